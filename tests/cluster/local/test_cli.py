"""The commands on a real machine: output, exit codes, and running processes afterwards."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from grove.local.cluster.lifecycle import down, running
from grove.local.cluster.operator_process import operator_of
from grove.local.cluster.ports import is_free
from grove.local.cluster.processes import stop
from grove.local.state_dir import StateDir

GROVE = str(Path(sys.executable).with_name("grove"))


def grove(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [GROVE, *arguments], capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )


@pytest.fixture
def state(tmp_path: Path, control_plane: object):
    found = StateDir(tmp_path / "cluster")
    yield found
    down(found, delete=True)


def test_up_status_kubectl_and_down(state) -> None:
    where = ("--state-dir", str(state.root))
    up = grove("up", *where, "--shape", "2x3", "--gpus", "4")
    assert up.returncode == 0, up.stderr
    assert f"export KUBECONFIG={state.kubeconfig}" in up.stdout
    assert f"kubectl --state-dir {state.root} get nodes)" in up.stdout
    status = grove("cluster", "status", *where, "-o", "json")
    assert status.returncode == 0, status.stderr
    found = json.loads(status.stdout)
    assert (found["nodes"], found["readyNodes"]) == (6, 6)
    assert "kube-apiserver" in grove("cluster", "status", *where).stdout
    nodes = grove("kubectl", *where, "get", "nodes", "-o", "name")
    assert len(nodes.stdout.splitlines()) == 6, nodes.stderr
    port = _kill_api_server(state)
    assert f"control plane ready at https://127.0.0.1:{port}\n" in grove("up", *where).stdout
    _kill_api_server(state)
    with _taken(port):
        again = grove("up", *where).stdout
    assert f"the API server's port has changed from {port} to {_port(state)}: {state.kubeconfig} has" in again
    stopped = grove("down", *where)
    assert stopped.returncode == 0
    assert state.root.exists(), "the data is kept"
    assert grove("cluster", "status", *where).returncode == 2
    assert grove("down", *where, "--delete").returncode == 0
    assert not state.root.exists()


def _kill_api_server(state: StateDir) -> int:
    """Kill the API server; returns its port."""
    process = running(state)["kube-apiserver"]
    os.kill(process.pid, signal.SIGKILL)
    stop(process, 0)  # returns when it is gone
    return _port(state)


def _taken(port: int) -> socket.socket:
    """Takes a port when the process that had it has released it."""
    while not is_free(port):
        time.sleep(0.02)  # the kernel does not report that a port is released
    return socket.create_server(("127.0.0.1", port))


def _port(state: StateDir) -> int:
    record = state.read()
    assert record is not None
    return record.ports.apiserver


INVALID = """
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: first}
spec:
  replicas: 1
  template:
    cliques:
      - {name: a, spec: {replicas: 1, minAvailable: 2, podSpec: {containers: [{name: main, image: i}]}}}
"""
AVAILABLE = ("--for=jsonpath={.status.availableReplicas}=1", "pcs/first", "--timeout", "2m")


def test_up_with_operator_serves_admission(state, tmp_path) -> None:
    """As installed by the chart: webhooks refuse an invalid set, and a valid one becomes available."""
    where, file = ("--state-dir", str(state.root)), tmp_path / "set.yaml"
    up = grove("up", *where, "--nodes", "2", "--operator")
    assert up.returncode == 0, up.stderr
    assert "operator ready" in up.stdout
    file.write_text(INVALID)
    refused = grove("kubectl", *where, "create", "-f", str(file))
    assert refused.returncode == 1
    assert "minAvailable must not be greater than replicas" in refused.stderr
    file.write_text(INVALID.replace("minAvailable: 2", "minAvailable: 1"))
    assert grove("kubectl", *where, "create", "-f", str(file)).returncode == 0
    assert grove("kubectl", *where, "wait", *AVAILABLE).returncode == 0, state.log("operator").read_text()
    log = state.log("operator").read_text()
    assert "forbidden" not in log.lower(), "it has the rights of the chart, and they suffice"
    assert operator_of(state) is not None
    removed = grove("up", *where, "--no-operator")
    assert "removed its webhooks" in removed.stdout, removed.stderr
    assert operator_of(state) is None
    file.write_text(INVALID.replace("first", "second"))
    assert grove("kubectl", *where, "create", "-f", str(file)).returncode == 0, "no webhook is left"


@pytest.mark.parametrize("after", ["starting", "control plane ready"])
def test_interrupted_up_leaves_nothing_running(state, after) -> None:
    command = [GROVE, "up", "--state-dir", str(state.root), "--nodes", "4000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert any(line.startswith(after) for line in process.stdout)
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
    assert process.returncode == 130, rest
    assert rest.strip() == "grove: interrupted"
    assert running(state) == {}
    assert grove("down", "--state-dir", str(state.root), "--delete").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("up", "--shape", "two"), "grove: --shape 'two': write zones x blocks x racks x hosts as numbers"),
        (
            ("up", "--nodes", "9", "--shape", "8"),
            "grove: --nodes 9: the shape 1x1x1x8 has 8 hosts: use fewer nodes or a larger shape",
        ),
        (("up", "--gpus", "-1"), "grove: --gpus -1: choose between 0 and 64 per node"),
        (("up", "--port", "99999"), "grove: --port 99999: choose a port up to 65535"),
        (("up", "--feature-gates", "Gang"), "grove: --feature-gates 'Gang': write Name=true or Name=false"),
        (("cluster", "status"), "grove: no cluster in "),
        (("kubectl", "get", "nodes"), "grove: no cluster in "),
    ],
)
def test_invalid_option_is_one_line_with_remedy(tmp_path, arguments, line) -> None:
    command, *rest = arguments
    words = (command, rest.pop(0)) if command == "cluster" else (command,)
    answer = grove(*words, "--state-dir", str(tmp_path / "cluster"), *rest)
    assert answer.returncode == 1
    assert answer.stderr.startswith(line)
    assert "\n" not in answer.stderr.strip()


def test_unwritable_state_directory_is_one_line(tmp_path) -> None:
    (tmp_path / "file").write_text("")
    answer = grove("up", "--state-dir", str(tmp_path / "file" / "cluster"))
    assert answer.returncode == 1
    assert answer.stderr.startswith("grove: cannot ")
    assert "Traceback" not in answer.stderr


def test_missing_go_and_index_is_one_line(tmp_path) -> None:
    """Nothing cached, nothing on PATH, no release, no Go: one line names the remedy."""
    empty = tmp_path / "bin"
    empty.mkdir()
    answer = grove(
        "up", "--state-dir", str(tmp_path / "cluster"),
        PATH=str(empty), GROVE_CACHE=str(tmp_path / "cache"), GROVE_MIRROR="http://127.0.0.1:9",
        KUBEBUILDER_ASSETS="", PIP_NO_INDEX="1", PIP_FIND_LINKS=str(empty),
    )  # fmt: skip
    assert answer.returncode == 1
    assert answer.stderr.startswith("grove: no Go 1.26.0 or later, and the download failed")
    assert "KUBEBUILDER_ASSETS" in answer.stderr
    assert "Traceback" not in answer.stderr
