"""`grove operator`: error messages and exit codes when it cannot start."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from grove.api.configuration.loading import ConfigurationError
from grove.cli.commands.operator import operator, read
from tests.kube.auth import kubeconfigs


def write(folder: Path, text: str) -> Path:
    path = folder / "config.yaml"
    path.write_text(text)
    return path


def test_each_invalid_key_is_one_line(tmp_path, capsys):
    path = write(tmp_path, "logLevel: loud\nleaderElection: {enabled: yes}\nserver: {metrics: {port: 1:30}}")
    assert operator(config=path) == 2
    assert capsys.readouterr().err.splitlines() == [
        f'grove: {path}: leaderElection.enabled: must be true or false, not "yes"',
        f'grove: {path}: server.metrics.port: must be a whole number, not "1:30"',
        f'grove: {path}: logLevel: must be debug or info or error, not "loud"',
    ]


def test_all_configuration_errors_are_reported_together(tmp_path, capsys):
    path = write(
        tmp_path,
        "leaderElection: {enabled: yes}\nserver: {metrics: {port: 70000}}\n"
        "scheduler: {profiles: [{name: unknown}]}\nfabrics: [unknown]\n",
    )
    assert operator(config=path) == 2
    first, second, vendor, scheduler = capsys.readouterr().err.splitlines()
    assert first == f'grove: {path}: leaderElection.enabled: must be true or false, not "yes"'
    where = f"grove: {path}: server.metrics.port"
    assert second == f"{where}: must be between 0 (any free port) and 65535, not 70000"
    assert vendor.startswith(f"grove: {path}: fabrics[0]: ")
    assert scheduler.startswith(f"grove: {path}: scheduler.profiles[0].name: no scheduler backend unknown: ")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: b: c", "not YAML at line 1"),
        ("- 1", "the file: must be an object, not a list"),
        ("just words", 'the file: must be an object, not "just words"'),
        ("kind: Pod\napiVersion: v1", "kind: must be OperatorConfiguration"),
    ],
)
def test_invalid_configuration_file_is_one_line(tmp_path, capsys, text, words):
    assert operator(config=write(tmp_path, text)) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line


def test_unknown_schedulers_are_configuration_errors(tmp_path, capsys):
    default = "{name: default-scheduler, config: {gangScheduling: 1}}"
    path = write(tmp_path, f"scheduler: {{profiles: [{{name: unknown}}, {default}]}}")
    assert operator(config=path) == 2
    unknown, malformed = capsys.readouterr().err.splitlines()
    assert unknown.startswith(f"grove: {path}: scheduler.profiles[0].name: no scheduler backend unknown: ")
    assert malformed.endswith("scheduler.profiles[1].config.gangScheduling: must be true or false, not 1")


def test_missing_configuration_file(tmp_path, capsys):
    path = tmp_path / "nowhere"
    assert operator(config=path) == 2
    why = "cannot be read (No such file or directory): check the path and the file mode"
    assert capsys.readouterr().err == f"grove: {path}: {why}\n"


def test_binary_configuration_file(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigurationError, match="not text: write it as YAML or JSON"):
        read(path)


def test_yaml_and_json_configuration_are_equal(tmp_path):
    as_yaml = read(write(tmp_path, "leaderElection:\n  enabled: true\n  leaseDuration: 30s\n"))
    as_json = read(write(tmp_path, '{"leaderElection": {"enabled": true, "leaseDuration": "30s"}}'))
    assert as_yaml == as_json == {"leaderElection": {"enabled": True, "leaseDuration": "30s"}}


def grove(*arguments: str) -> subprocess.CompletedProcess[str]:
    code = "from grove.cli.main import main; main()"
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)


def test_unknown_option_is_command_line_error():
    run = grove("operator", "--konfig", "x")
    assert run.returncode == 1
    assert "--konfig" in run.stderr


@pytest.mark.parametrize("with_file", [True, False])
def test_missing_kubeconfig_is_one_line(tmp_path, with_file):
    missing = tmp_path / "kubeconfig"
    config = ("--config", str(write(tmp_path, ""))) if with_file else ()
    run = grove("operator", *config, "--kubeconfig", str(missing))
    assert run.returncode == 4
    assert run.stderr == f"grove: kubeconfig {missing} does not exist: check the path\n"


def test_help_lists_exit_codes():
    text = " ".join(grove("operator", "--help").stdout.split())
    assert "2 wrong configuration; 4 no kubeconfig, certificate or free port; 6 leadership lost" in text


def test_unknown_configuration_key_is_a_warning(tmp_path):
    path = write(tmp_path, "defragment: true\nscheduler: {profiles: [{name: volcano, config: {queue: a}}]}\n")
    ended = grove("operator", "--config", str(path), "--kubeconfig", str(tmp_path / "nowhere"))
    assert ended.returncode == 4
    lines = [json.loads(line) for line in ended.stderr.splitlines()[:-1]]
    assert [(line["level"], line["message"], line["key"]) for line in lines] == [
        ("warning", "ignored", "defragment"),
        ("warning", "ignored", "scheduler.profiles[0].config.queue"),
    ]


def test_wrong_and_unknown_keys_are_named_together(tmp_path, capsys):
    """Also an unknown backend beside a profile that cannot be read."""
    profiles = "[{name: 1}, {name: unknown}, {name: default-scheduler, config: {gangSchedulng: true}}]"
    path = write(tmp_path, f"logLevl: debug\ndefragment: true\nscheduler: {{profiles: {profiles}}}\n")
    assert operator(config=path) == 2
    lines = [line.removeprefix(f"grove: {path}: ") for line in capsys.readouterr().err.splitlines()]
    backends = "default-scheduler, kai-scheduler, volcano, lpx-scheduler"
    assert lines == [
        "scheduler.profiles[0].name: must be text, not 1",
        "logLevl: unknown key: did you mean logLevel?",
        "scheduler.profiles[2].config.gangSchedulng: unknown key: did you mean gangScheduling?",
        f"scheduler.profiles[1].name: no scheduler backend unknown: use one of {backends}",
        "defragment: unknown key: this version does not have it, remove it",
    ]


@contextmanager
def waiting_operator(kubeconfig: Path) -> Iterator[tuple[subprocess.Popen[str], dict[str, int]]]:
    """An operator without a configuration file, and its ports. It waits for its API server."""
    command = [sys.executable, "-c", "from grove.cli.main import main; main()", "operator"]
    with subprocess.Popen(
        [*command, "--kubeconfig", str(kubeconfig)], stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        ports: dict[str, int] = {}
        for line in map(json.loads, process.stderr):
            if line["message"] == "listening":
                ports[line["key"]] = line["port"]
            elif line["message"] == "started":
                break
        try:
            yield process, ports
        finally:
            process.terminate()
            process.communicate()


def test_two_operators_without_configuration_run_at_once(tmp_path):
    file = kubeconfigs.write(
        tmp_path / "config", kubeconfigs.kubeconfig(cluster={"server": "https://127.0.0.1:9"})
    )
    with waiting_operator(file) as (first, one), waiting_operator(file) as (second, two):
        assert first.poll() is None
        assert second.poll() is None
        assert one.keys() == two.keys() == {
            "server.healthProbes.port", "server.metrics.port", "server.webhooks.port",
        }  # fmt: skip
        assert len({*one.values(), *two.values()}) == 6
    assert (first.returncode, second.returncode) == (0, 0)
