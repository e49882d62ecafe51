"""Commands that act on workloads or check the installation, without a cluster and with wrong options."""

from __future__ import annotations

import json

import pytest

from grove.cli.main import main

COMMANDS = [
    ("rollout", "status", "x"),
    ("rollout", "pause", "x"),
    ("rollout", "resume", "x"),
    ("restart", "x"),
    ("doctor",),
    ("diagnostics",),
]


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    """Runs a command in an empty folder; returns exit code, output and errors."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[object, str, str]:
        with pytest.raises(SystemExit) as end:
            main(list(arguments))
        printed = capsys.readouterr()
        return end.value.code or 0, printed.out, printed.err

    return run


@pytest.fixture
def unreachable(tmp_path):
    """The kubeconfig of a server that does not exist."""
    server = {"clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:9"}}]}
    context = {"contexts": [{"name": "c", "context": {"cluster": "c"}}], "current-context": "c"}
    file = tmp_path / "kubeconfig"
    file.write_text(json.dumps({**server, **context}))
    return file


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_unreachable_server_is_one_line(run, tmp_path, unreachable, command):
    code, out, err = run(*command, "--kubeconfig", str(unreachable))
    assert (code, out) == (1, "")
    assert err.startswith("grove: ")
    assert "127.0.0.1:9" in err
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == [unreachable]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_missing_kubeconfig_is_one_line(run, command):
    code, out, err = run(*command, "--kubeconfig", "nowhere")
    assert (code, out) == (1, "")
    assert err == "grove: kubeconfig nowhere does not exist: check the path\n"


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        (("rollout", "status", "x", "--timeout", "soon"),
         '--timeout soon: "soon" is not a duration such as "4h0m0s" or "90s"'),
        (("rollout", "status", "x", "--timeout=-1s"),
         "--timeout -1s: must not be negative: write 0 for no limit"),
        (("rollout", "stop", "x"), "unknown command rollout stop: commands: pause, resume, status"),
        (("rollout", "status"), "NAME is missing: grove rollout status --help describes it"),
        (("restart", "x", "--replica", "first"), "--replica first: write a whole number"),
    ],
)  # fmt: skip
def test_wrong_option_is_one_line(run, command, problem):
    code, out, err = run(*command)
    assert (code, out) == (1, "")
    assert err.startswith(f"grove: {problem}")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("pod/x",), "pod/x: a pod is replaced when it is deleted: kubectl delete pod x"),
        (
            ("service/x",),
            "service/x: unknown kind service: choose one of clique, gang, graph, group, pod, set",
        ),
        (("x", "--replica", "-1"), "--replica -1: indices begin with 0"),
        (("x", "--group-replica", "0"), "--group-replica needs --group"),
        (
            ("x", "--clique", "a", "--group", "b"),
            "--clique and --group exclude each other: a replica of a group restarts as a whole",
        ),
    ],
)
def test_part_that_cannot_be_restarted_is_one_line(run, unreachable, arguments, problem):
    answer = run("restart", *arguments, "--kubeconfig", str(unreachable))
    assert answer == (1, "", f"grove: {problem}\n")


def test_archive_is_written_over_no_other_file(run, unreachable):
    answer = run("diagnostics", "-f", str(unreachable), "--kubeconfig", str(unreachable))
    assert answer == (1, "", f"grove: {unreachable} exists already: name another file with -f\n")
    answer = run("diagnostics", "-f", "none/a", "--kubeconfig", str(unreachable))
    assert answer == (
        1,
        "",
        "grove: none/a: there is no folder none: create it, or name another file with -f\n",
    )
