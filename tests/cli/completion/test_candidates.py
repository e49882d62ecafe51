"""What may follow on a command line, without a cluster."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from grove.cli.completion import candidates
from grove.cli.completion.candidates import FILES, NO_FILES, complete
from grove.cli.completion.scripts import SCRIPTS
from grove.cli.main import COMMANDS
from tests.terminal import GROVE


def words(*line: str) -> list[str]:
    return [each.word for each in complete(line).candidates]


def test_commands_are_completed_with_their_summaries():
    answer = complete(["ge"])
    assert answer.candidates == [("get", COMMANDS["get"][1])]
    assert answer.directive == NO_FILES
    assert {*COMMANDS, "help", "version"} == {*words("")}
    assert words("cluster", "") == ["status", "prepare"]
    assert words("help", "tre") == ["tree"]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (["get", "-o", ""], ["table", "wide", "json", "yaml", "name"]),
        (["get", "-A", "--output", "y"], ["yaml"]),
        (["completion", "z"], ["zsh"]),
        (["tree", "--all"], ["--all-namespaces"]),
        (["get", "-n"], ["-n"]),
        (["up", "--pace", ""], ["fast", "slow"]),
        (["get", "--lease", ""], []),
        (["get", "a", ""], []),
        (["nothing", ""], []),
    ],
    ids=lambda each: " ".join(each),
)
def test_options_and_their_values_are_completed(line, found):
    assert words(*line) == found


@pytest.mark.parametrize(
    "line", [["plan", "-f", ""], ["get", "--kubeconfig", ""], ["plan", "--snapshot", "x"]]
)
def test_files_are_left_to_the_shell(line):
    assert complete(line) == ((), FILES)


def test_contexts_are_those_of_the_kubeconfig(tmp_path):
    file = tmp_path / "config"
    file.write_text("contexts:\n- {name: b, context: {cluster: x}}\n- {name: a, context: {cluster: x}}\n")
    assert words("get", "--kubeconfig", str(file), "--context", "") == ["a", "b"]
    assert words("get", f"--kubeconfig={file}", "--context", "b") == ["b"]


def test_commands_with_a_name_complete_sets(monkeypatch):
    monkeypatch.setattr(candidates.ClusterNames, "sets", lambda names: [f"{names._cluster.namespace}-set"])
    for command in ("get", "tree", "explain", "plan"):
        assert words(command, "-n", "team", "") == ["team-set"]
    assert words("topology", "-n", "team", "") == []


def test_name_after_a_kind_is_completed_where_kinds_are_accepted(monkeypatch):
    monkeypatch.setattr(candidates.ClusterNames, "sets", lambda _names: ["demo"])
    monkeypatch.setattr(candidates.ClusterNames, "of_kind", lambda _names, word: [f"{word}-0", "other"])
    for command in ("explain", "status", "events", "logs"):
        assert words(command, "gang/g") == ["gang/gang-0"]
        assert words(command, "gang/") == ["gang/gang-0", "gang/other"]
    assert words("get", "gang/") == [], "get lists sets only"


def test_failure_is_silent(monkeypatch, capsys):
    def fail(_words: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(candidates, "complete", fail)
    assert candidates.main(["get", ""]) == 0
    assert capsys.readouterr() == (":4\n", "")


BASH = """
source <(grove completion bash)
COMP_WORDS=(grove get -o ""); COMP_CWORD=3; _grove; echo "${COMPREPLY[@]}"
"""
ZSH = """
autoload -Uz compinit; compinit -u -D; source <(grove completion zsh)
_describe() { for each in "${(@P)2}"; do print -r -- ${each%%:*}; done }
words=(grove get -o ''); CURRENT=4; _grove
"""
FISH = 'grove completion fish | source; complete -C"grove get -o " '


@pytest.mark.parametrize(("shell", "script"), [("bash", BASH), ("zsh", ZSH), ("fish", FISH)])
def test_script_completes_in_its_shell(shell, script, tmp_path):
    variables = {"PATH": f"{Path(GROVE).parent}:{os.environ['PATH']}", "HOME": str(tmp_path), "TERM": "dumb"}
    try:
        ended = subprocess.run(
            [shell, "-c", script], capture_output=True, text=True, check=False, env=variables
        )
    except FileNotFoundError:
        pytest.skip(f"{shell} is not installed")
    assert sorted(ended.stdout.split()) == ["json", "name", "table", "wide", "yaml"], ended.stderr


def test_script_of_each_shell_is_printed():
    for shell, script in SCRIPTS.items():
        ended = subprocess.run([GROVE, "completion", shell], capture_output=True, text=True, check=False)
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, script, "")


def test_program_of_kubectl_completes():
    program = str(Path(GROVE).with_name("kubectl_complete-grove"))
    ended = subprocess.run([program, "tree", "-o", "na"], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "name\n:4\n", "")
