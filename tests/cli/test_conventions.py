"""What all commands have in common: names of objects, exit codes, the scope, and the program's own name."""

from __future__ import annotations

from pathlib import Path

import pytest

from grove.api.types.registry import KINDS
from grove.cli import program
from grove.cli.commands.plan import EXIT_CODES
from grove.cli.exit_codes import ExitCode
from grove.cli.main import COMMANDS, app
from grove.cli.options import Output
from grove.cli.scope import check_scope
from grove.cli.structured_output import object_name
from grove.dry_run.model import Verdict
from grove.dynamo.api.graph_deployment import DynamoGraphDeployment
from grove.explanation.suggestions import unknown_name
from grove.kube.errors import ConfigError
from tests.shared import ROOT

PAGE = ROOT / "docs" / "cli.md"
SHOWING = ("explain", "get", "plan", "topology", "tree")
"""Commands that show objects of a cluster."""


@pytest.mark.parametrize("kind", [*(each.KIND for each in KINDS), DynamoGraphDeployment.KIND], ids=str)
def test_names_of_objects_have_the_group_of_their_kind(kind):
    assert object_name(kind.name, "x") == f"{kind.name.lower()}.{kind.group}/x"
    assert object_name("Pod", "x") == "pod/x"


def test_every_verdict_of_a_plan_has_an_exit_code():
    assert EXIT_CODES.keys() == {*Verdict}
    assert all(f"| {code.value} | " in PAGE.read_text() for code in ExitCode)


@pytest.mark.parametrize("name", SHOWING)
def test_commands_that_show_objects_have_the_same_options(name):
    options = {each.names: each.hint for each in app[name].assemble_argument_collection()}
    assert options["--output", "-o"] is Output
    assert {("--context",), ("--kubeconfig",)} <= options.keys()
    assert (("--namespace", "-n") in options) == (name != "topology")
    assert (("--watch", "-w") in options) == (name in ("get", "topology", "tree"))
    assert (("--selector", "-l") in options) == (name in ("explain", "get", "tree"))


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ((None, "a", True), "--namespace a and --all-namespaces exclude each other: use one of them"),
        (("x", None, True), "x: a name needs a namespace: replace --all-namespaces with --namespace"),
        (("x", None, False, "a=b"), "x and --selector a=b exclude each other: use one of them"),
        (
            (None, None, False, "a in b"),
            "--selector a in b: label selector 'a in b' is not one: write key=value",
        ),
    ],
)
def test_options_that_exclude_each_other_are_refused(arguments, line):
    with pytest.raises(ConfigError) as error:
        check_scope(*arguments)
    assert str(error.value).startswith(line)


@pytest.mark.parametrize(
    ("known", "hint"),
    [
        ([("b", "demo"), ("a", "demo")], "there is one in namespace a: add -n a"),
        ([("here", "demos"), ("a", "other")], "did you mean demos?"),
        ([("a", "demos")], "grove get -A lists all sets"),
        ([], "grove get -A lists all sets"),
    ],
)
def test_unknown_name_has_a_suggestion(known, hint):
    assert (
        unknown_name("PodCliqueSet", "demo", "here", known)
        == f"no PodCliqueSet demo in namespace here: {hint}"
    )


@pytest.mark.parametrize(
    ("called", "line"),
    [
        ("/usr/bin/grove", "run grove get -A, or grove crds | kubectl apply; a grove is none"),
        (
            "/x/kubectl-grove",
            "run kubectl grove get -A, or kubectl grove crds | kubectl apply; a grove is none",
        ),
    ],
)
def test_commands_are_written_as_users_type_them(called, line, monkeypatch):
    monkeypatch.setattr("sys.argv", [called])
    text = "run grove get -A, or grove crds | kubectl apply; a grove is none"
    assert program.as_called(text, COMMANDS) == line
    assert program.as_called(line, COMMANDS) == line


def test_distribution_has_the_programs_of_kubectl():
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["name"] == program.DISTRIBUTION
    assert {*project["scripts"]} == {"grove", "kubectl-grove", "kubectl_complete-grove"}
    assert Path(ROOT / "docs/cli.md").read_text().count("uv tool install grove-operator") == 1
