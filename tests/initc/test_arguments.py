"""Arguments of the init container: what is accepted, and the messages for what is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from grove.cli.commands import initc
from grove.initc.arguments import PodContext, UsageError, WaitArguments, locate, parse


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("--podcliques=wl-0-a:2", {"wl-0-a": 2}),
        ("--podcliques=wl-0-a:2 --podcliques=wl-0-b:1", {"wl-0-a": 2, "wl-0-b": 1}),
        ("--podcliques wl-0-a:2 -p wl-0-b:1 -p=wl-0-c:3", {"wl-0-a": 2, "wl-0-b": 1, "wl-0-c": 3}),
        ("-p a:1,b:2", {"a": 1, "b": 2}),
        ("-p a:3 -p a:1", {"a": 3}),
        ("-p a.b:1", {"a.b": 1}),
    ],
)
def test_podcliques_option_sets_names_and_counts(arguments, expected):
    assert parse(arguments.split()).cliques == expected


def test_folder_options_replace_default_folders():
    arguments_ = parse(["-p", "a:1", "--service-account=/x", "--pod-info", "/y"])
    assert arguments_ == WaitArguments({"a": 1}, Path("/x"), Path("/y"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "no PodClique to wait for: give --podcliques=NAME:COUNT"),
        ("-p", "-p: a value is missing"),
        ("-p a", "--podcliques=a: write NAME:COUNT with the name of a PodClique"),
        ("-p :1", "--podcliques=:1: write NAME:COUNT with the name of a PodClique"),
        ("-p a/b:1", "--podcliques=a/b:1: write NAME:COUNT with the name of a PodClique"),
        ("-p a:0", "--podcliques=a:0: the count must be a whole number above 0, not '0'"),
        ("-p a:-1", "--podcliques=a:-1: the count must be a whole number above 0, not '-1'"),
        ("-p a:\u0663", "--podcliques=a:\u0663: the count must be a whole number above 0, not '\u0663'"),
        ("-p a:", "--podcliques=a:: the count must be a whole number above 0, not ''"),
        ("a:1", "a:1: no such option; give --podcliques=NAME:COUNT"),
        ("--podclique=a:1", "--podclique: no such option; give --podcliques=NAME:COUNT"),
    ],
)
def test_invalid_arguments_print_one_line_and_exit_1(arguments, message, capsys):
    assert initc.main(arguments.split()) == 1
    assert capsys.readouterr().err == f"grove-initc: {message}\n"


def test_help_names_every_option(capsys):
    assert initc.main(["--help"]) == 0
    printed = capsys.readouterr().out
    assert [option for option in ("-p", "--podcliques", "--service-account") if option not in printed] == []


SERVER = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "6443"}


@pytest.fixture
def arguments_(tmp_path) -> WaitArguments:
    (tmp_path / "namespace").write_text("ns\n")
    (tmp_path / "podgangname").write_text("wl-0")
    return WaitArguments({"a": 1}, tmp_path, tmp_path)


def test_locate_reads_environment_and_pod_info(arguments_):
    assert locate(arguments_, SERVER) == PodContext("10.0.0.1", 6443, "ns", "wl-0")
    assert locate(arguments_, {"KUBERNETES_SERVICE_HOST": "::1"}).port == 443


@pytest.mark.parametrize("environ", [{}, {**SERVER, "KUBERNETES_SERVICE_PORT": "tcp://10.0.0.1:1"}])
def test_locate_outside_of_a_pod_is_an_error(arguments_, environ):
    with pytest.raises(UsageError, match="run it in a pod"):
        locate(arguments_, environ)


@pytest.mark.parametrize("name", ["namespace", "podgangname"])
def test_locate_without_pod_info_names_the_file(arguments_, name):
    file = arguments_.pod_info / name
    file.write_text("\n")
    with pytest.raises(UsageError, match=rf"{name} contains '', which is not a name: check the labels"):
        locate(arguments_, SERVER)
    file.unlink()
    with pytest.raises(UsageError, match=rf"{name} cannot be read \(No such file or directory\): mount"):
        locate(arguments_, SERVER)
