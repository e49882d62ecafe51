"""`grove demo` end to end: its output, a second run, and interrupts."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
from pathlib import Path
from urllib.request import urlopen

import pytest

from grove.cli.commands.demo import next_commands
from grove.local.cluster.dashboard_process import has_dashboard
from grove.local.cluster.lifecycle import down, running
from grove.local.cluster.operator_process import operator_of
from grove.local.state_dir import StateDir
from tests.terminal import GROVE, on_terminal

KINDS = "pcs,pclq,pcsg,pg,pods,clustertopologies"
ORDER = (
    "prefill-0-prefill-leader",
    "prefill-0-prefill-worker",
    "decode-0-decode-leader",
    "decode-0-decode-worker",
    "router",
)


@pytest.fixture
def state(tmp_path: Path, control_plane: object):
    found = StateDir(tmp_path / "cluster")
    yield found
    down(found, delete=True)


def run(*arguments: str, **environment: str) -> str:
    answer = subprocess.run(
        [GROVE, *arguments], capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def test_demo_runs_twice_and_its_commands_work(state: StateDir) -> None:
    first = run("demo", "--state-dir", str(state.root))
    assert "\x1b" not in first
    assert "gang demo-0: Running" in first
    assert "gang demo-0-decode-1: Running" in first
    assert re.search(r"demo-0-decode +3/3 available", first)
    ready = [re.search(rf"^clique demo-0-{one}: [1-9]", first, re.MULTILINE) for one in ORDER]
    assert all(ready), first
    moments = [moment for one in ORDER for moment in _ready(state, f"demo-0-{one}")]
    assert moments == sorted(moments), "each clique starts when the one before it is ready"

    found = _racks(first)
    assert {gang: rack for gang, rack in found.items() if gang.startswith("demo-")} == {
        "demo-0": "z0-b0-r0",
        "demo-0-prefill-0": "z0-b0-r0",
        "demo-0-decode-0": "z0-b0-r1",
        "demo-0-decode-1": "z0-b0-r1",
    }
    training = {f"training-{replica}" for replica in range(3)}
    assert {found[gang] for gang in training & found.keys()} == {"z0-b1-r0", "z0-b1-r1"}
    (waits,) = training - found.keys()
    assert _nodes_of(state, waits) == {""}
    assert "needs 64 nvidia.com/gpu, 32 free" in first.rpartition(f"Pending, gang {waits}\n")[2]
    assert max(map(len, _drawing(first))) <= 80
    _check_dashboard(first, found, waits)

    code, again = on_terminal("demo", "--state-dir", str(state.root), columns=40)
    assert code == 0, again
    assert "deleting the workloads of the previous demo" in again
    assert "demo  1/1 available" in re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", again)
    assert "make down" not in again, "it would delete another cluster"

    output = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", again).partition("next commands to try")[2]
    commands = next_commands(GROVE, state)
    assert [line.strip() for line in output.strip().splitlines()] == [
        command.replace(GROVE, _called(output)) for command in commands
    ]
    script = "set -eux\n" + "\n".join(commands)
    tried = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert tried.returncode == 0, tried.stderr
    assert "podcliqueset.grove.io/demo scaled" in tried.stdout
    assert not state.root.exists()


def _drawing(output: str) -> list[str]:
    """The racks and the list of gangs."""
    rest = output.partition("\neach gang is in one rack")[2]
    return rest.partition("\nthe dashboard is")[0].splitlines()[1:]


def _racks(output: str) -> dict[str, str]:
    """The rack of each gang that is in one, as drawn."""
    letters = re.findall(r"^  ([A-Z])  (\S+)  .* in rack (\S+)$", output, re.MULTILINE)
    drawn: dict[str, set[str]] = {}
    rack = ""
    for line in _drawing(output):
        if line.startswith("rack "):
            rack = line.split()[1]
        elif line.startswith("  │"):
            for letter in re.findall(r"[A-Z]", line):
                drawn.setdefault(letter, set()).add(rack)
    assert {letter: {name} for letter, _, name in letters} == drawn
    return {gang: name for _, gang, name in letters}


def _check_dashboard(output: str, racks: dict[str, str], waits: str) -> None:
    """The dashboard whose address was printed shows the same racks, and why the gang waits."""
    address = re.search(r"http://127\.0\.0\.1:\d+/", output)
    assert address is not None
    assert output.partition("\nnext commands")[0].endswith(f"\nthe dashboard is at {address[0]}\n")
    with urlopen(f"{address[0]}api/picture", timeout=10) as answer:
        picture = json.load(answer)
    label = next(each["label"] for each in picture["topologies"][0]["levels"] if each["name"] == "rack")
    shown = {
        use["gang"].removeprefix("default/"): node["domains"][label]
        for node in picture["nodes"].values()
        for use in node.get("uses", ())
        if use.get("gang")
    }
    assert shown == racks
    assert picture["gangs"][f"default/{waits}"]["waiting"]["code"] == "InsufficientResources"


def _nodes_of(state: StateDir, gang: str) -> set[str]:
    chosen = ("get", "pods", "-l", f"grove.io/podgang={gang}", "-o", "json")
    pods = json.loads(run("kubectl", "--state-dir", str(state.root), *chosen))["items"]
    return {pod["spec"].get("nodeName", "") for pod in pods}


def _ready(state: StateDir, clique: str) -> tuple[str, str]:
    """The times at which the first and the last pod of a clique became ready, by the cluster's clock."""
    chosen = ("get", "pods", "-l", f"grove.io/podclique={clique}", "-o", "json")
    pods = json.loads(run("kubectl", "--state-dir", str(state.root), *chosen))["items"]
    facts = [fact for pod in pods for fact in pod["status"]["conditions"] if fact["type"] == "Ready"]
    moments = sorted(fact["lastTransitionTime"] for fact in facts)
    return moments[0], moments[-1]


def _called(output: str) -> str:
    """The name by which the demo prints commands of this program."""
    return shlex.split(output.strip().splitlines()[1])[0]


def interrupted(state: StateDir, after: str) -> str:
    """Sends Ctrl-C once the output contains a text; returns the rest of the output."""
    command = [GROVE, "demo", "--state-dir", str(state.root)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert any(line.startswith(after) for line in process.stdout)
        process.send_signal(signal.SIGINT)
        process.stdout.read()
        rest = process.stderr.read()
    assert process.returncode == 130, rest
    return rest


@pytest.mark.parametrize("after", ["starting", "gang demo-0: Pending"])
def test_interrupted_demo_removes_its_own_cluster(state: StateDir, after: str) -> None:
    assert interrupted(state, after).strip() == "grove: interrupted"
    assert not state.root.exists()


def test_interrupted_demo_keeps_existing_cluster(state: StateDir) -> None:
    run("up", "--state-dir", str(state.root), "--nodes", "16")
    assert interrupted(state, "gang demo-0: Pending").strip() == "grove: interrupted"
    assert len(running(state)) >= 5
    assert operator_of(state) is None
    assert not has_dashboard(state)
    left = run("kubectl", "--state-dir", str(state.root), "get", KINDS, "-A", "-o", "name")
    assert left == ""
    webhooks = "validatingwebhookconfigurations,mutatingwebhookconfigurations"
    left = run("kubectl", "--state-dir", str(state.root), "get", webhooks, "-o", "name")
    assert left == "", "without the operator they refuse every write"


def test_exited_operator_is_reported(state: StateDir) -> None:
    command = [GROVE, "demo", "--state-dir", str(state.root)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert any(line.startswith("gang demo-0: Pending") for line in process.stdout)
        operator = operator_of(state)
        assert operator is not None
        os.kill(operator.pid, signal.SIGKILL)
        process.stdout.read()
        output = process.stderr.read()
    assert process.returncode == 1
    assert output.startswith("grove: the operator has exited; last lines of ")
    assert "Traceback" not in output


def test_demo_with_fabric_joins_compute_domains(state: StateDir) -> None:
    output = run("demo", "--fabric", "--state-dir", str(state.root))
    assert re.search(r"ComputeDomain demo-0: 8 of 8 nodes ready, on \d racks", output)
    assert "gang demo-0-decode-1: Running" in output
    assert "describe computedomains" in output
    kubectl = ("kubectl", "--state-dir", str(state.root))
    twelve = "--for=jsonpath={.status.computeDomains[0].readyNodes}=12"
    run(*kubectl, "wait", "pcs/demo", twelve, "--timeout=2m")
    split = '--for=jsonpath={.status.conditions[?(@.type=="ComputeDomainsReady")].reason}=FabricSplit'
    run(*kubectl, "wait", "pcs/demo", split, "--timeout=2m")  # it is larger than a rack
