"""Wrong command lines: one line that names the remedy. And the commands `version` and `help`."""

from __future__ import annotations

from importlib import metadata

import pytest

from grove.cli.main import app, main
from grove.cli.usage_errors import command_names


def ended(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[object, str, str]:
    """The exit code, the output and the errors of a command."""
    with pytest.raises(SystemExit) as end:
        main(arguments)
    printed = capsys.readouterr()
    return end.value.code or 0, printed.out, printed.err


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["get", "--foo"], "unknown option --foo: grove get --help lists all"),
        (
            ["get", "--namspace", "a"],
            "unknown option --namspace: did you mean --namespace? grove get --help lists all",
        ),
        (["get", "a", "b"], "unexpected argument b: grove get --help shows what it takes"),
        (["get", "a", "b", "c"], "unexpected arguments b c: grove get --help shows what it takes"),
        (["up", "--nodes", "x"], "--nodes x: write a whole number"),
        (["demo", "--fabric=maybe"], "--fabric maybe: write yes or no"),
        (["get", "--output", "text"], "--output text: choose table, wide, json, yaml or name"),
        (["tree", "-n"], "-n: needs a value: grove tree --help describes it"),
        (["up", "--nodes", "3", "--nodes", "4"], "--nodes: given more than once: leave out all but one"),
        (
            ["cluster", "start"],
            "unknown command cluster start: did you mean status? commands: prepare, status",
        ),
        (["help", "get", "x"], "unknown command get x: grove help get shows what that command takes"),
    ],
    ids=" ".join,
)
def test_wrong_command_line_is_one_line_with_remedy(arguments, line, capsys):
    assert ended(arguments, capsys) == (1, "", f"grove: {line}\n")


@pytest.mark.parametrize("arguments", [["gett"], ["help", "gett"]], ids=" ".join)
def test_unknown_command_lists_all_commands(arguments, capsys):
    code, out, err = ended(arguments, capsys)
    names = command_names(app)
    assert {"get", "help", "initc", "operator", "up", "version"} <= {*names}
    line = f"unknown command gett: did you mean get? commands: {', '.join(names)}"
    assert (code, out, err) == (1, "", f"grove: {line}\n")


@pytest.mark.parametrize("arguments", [["version"], ["--version"]], ids=" ".join)
def test_version_is_that_of_the_package(arguments, capsys):
    assert ended(arguments, capsys) == (0, f"{metadata.version('grove-operator')}\n", "")


@pytest.mark.parametrize("command", [[], ["get"], ["cluster"], ["cluster", "status"]], ids=" ".join)
def test_help_of_a_command_is_that_of_its_option(command, capsys):
    by_command, by_option = ended(["help", *command], capsys), ended([*command, "--help"], capsys)
    assert by_command == by_option
    assert by_command[1].startswith(" ".join(["Usage: grove", *command]))
