"""Runs the commands of README.md and of pages in docs."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from grove.api.naming.well_known import GANG_GATE
from grove.local.cluster.lifecycle import down
from grove.local.state_dir import StateDir
from tests.clusters import one_at_a_time
from tests.pages import block, mentioned, run_commands, section
from tests.shared import ROOT

README = (ROOT / "README.md").read_text()
TWO = ["make demo", "make test"]
ASIDE = ["make help", "make down"]
CLUSTER = ["grove up", "grove cluster status", "grove kubectl", "grove down"]


@pytest.fixture
def home(tmp_path: Path, control_plane: object):
    """A home directory without a cluster; processes that still run there are stopped after the test."""
    state = StateDir(tmp_path / ".local/state/grove/default")
    with one_at_a_time("operator on the documented ports"):
        yield tmp_path
        down(state, delete=True)


def left(home: Path) -> list[Path]:
    return list((home / ".local/state/grove").glob("*"))


def test_all_readme_commands_are_run_here() -> None:
    typed = {*TWO, *ASIDE, *CLUSTER, *block(section("README.md", "Try the operator"))}
    assert set(block(README)) | {*mentioned(README)} - {"grove", "grove operator", "grove dashboard"} == typed
    assert "grove up --operator" in typed


def test_no_command_writes_into_the_checkout() -> None:
    """Tests run the pages in a checkout, and so do readers."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    targets = [
        target
        for page in pages
        for command in block(page.read_text())
        if command.startswith(("grove ", "kubectl ", "make ", "echo "))
        for target in re.findall(r"\d?>>? *([^\s&>]+)", command)
    ]
    assert len(targets) >= 5
    assert [target for target in targets if not target.startswith(("~/", "/"))] == []


@pytest.mark.skipif(Path(sys.prefix) != ROOT / ".venv", reason="make has an environment of its own")
def test_make_demo_and_make_test(home: Path) -> None:
    narrowed = "make test ARGS='-q tests/api/naming/test_names.py'"  # all tests would include this one
    output = run_commands([*TWO[:1], narrowed, *ASIDE], home).stdout
    assert "gang demo-0-decode-1: Running" in output
    assert re.search(r"^\d+ passed", output, re.MULTILINE)
    assert "stopped dashboard, operator, " in output
    assert left(home) == []


def test_local_cluster_page(home: Path) -> None:
    output = run_commands(CLUSTER, home).stdout
    assert "16 of 16 nodes ready" in output
    assert "kubectl controls the Kubernetes cluster manager" in output


def test_readme_try_the_operator(home: Path) -> None:
    output = run_commands(block(section("README.md", "Try the operator")), home).stdout
    assert "demo  1/1 available" in output
    assert left(home) == []


def test_autoscaling_and_sharing_pages(home: Path) -> None:
    """The commands of the second page run on the cluster of the first."""
    *commands, kill, down_ = block(section("docs/autoscaling.md", "Try it"))
    *begin, sharing = commands[:3], block(section("docs/sharing.md", "Try it"))
    assert [sharing[:3], sharing[-2:]] == [*begin, [kill, down_]]
    across = block(section("docs/sharing.md", "Templates of another namespace"))
    output = run_commands([*commands, *sharing[3:-2], *across, kill, down_], home).stdout
    assert "podcliqueset.grove.io/guest condition met" in output
    assert re.search(r"^twins-0-(server|shadow)-\S+ +twins-0-gpu$", output, re.MULTILINE)
    assert re.search(r"^twins-0-loader-\S+ +twins-0-loader-1-port$", output, re.MULTILINE)
    assert re.search(r"^twins-0-loader-2-port +allocated,reserved", output, re.MULTILINE)
    assert re.search(r"^chat-0-router +PodClique/chat-0-router .* 2 +6 ", output, re.MULTILINE)
    assert re.search(r"^chat-0-decode +PodCliqueScalingGroup/chat-0-decode .* 1 +4 ", output, re.MULTILINE)
    assert re.search(r"chat-0-decode +3/3 available", output)
    assert left(home) == []


def test_topology_page(home: Path) -> None:
    output = run_commands(block(section("docs/topology.md", "Try it")), home).stdout
    pods = dict(re.findall(r"^(packed-\d-worker-\S+) +(\S+)$", output, re.MULTILINE))
    racks = dict(re.findall(r"^(\S+) +Ready .* (\S+)$", output, re.MULTILINE))
    assert len(pods) == 8
    for replica in ("packed-0-", "packed-1-"):
        assert len({racks[node] for pod, node in pods.items() if pod.startswith(replica)}) == 1
    assert re.search(r'\{"domain":"rack",.*"labelledNodes":16,"values":2\}', output)
    assert "podcliqueset.grove.io/packed condition met" in output
    assert left(home) == []


def test_placement_page(home: Path) -> None:
    """The commands that explain why a gang waits run while one does."""
    commands = block(section("docs/placement.md", "Try it"))
    looks = [
        re.sub("^kubectl", "grove kubectl", look.replace("chat", "whole"))
        for look in block(section("docs/placement.md", "Why does my gang wait?"))
    ]
    at = commands.index("grove kubectl delete pcs/packed")
    output = run_commands([*commands[:at], *looks, *commands[at:]], home).stdout

    packed = re.findall(r"^packed-\d-worker-\S+ +(\S+-r\d)-h\d +map\[(.*)\]$", output, re.MULTILINE)
    assert len(packed) == 8
    assert {rack for rack, _ in packed} == {packed[0][0]}, "one rack is kept whole"
    assert all(f"topology.kubernetes.io/rack:{rack}" in pins.split() for rack, pins in packed)
    assert '{"packed-0-worker":{"topology.kubernetes.io/block":"z0-b0",' in output

    whole = re.findall(r"^(whole-\d)-worker-\S+ +(\S+) +(\S+)$", output, re.MULTILINE)
    gated = {gang for gang, node, gate in whole if (node, gate) == ("<none>", GANG_GATE)}
    running = {gang for gang, node, gate in whole if node.startswith("z0-b0-") and gate == "<none>"}
    assert len(whole) == 16
    assert len(gated) == len(running) == 1
    assert gated.isdisjoint(running)
    (waits,) = gated
    assert re.search(
        rf"^{waits} +Pending +.*no place now: .*needs 64 nvidia.com/gpu, 32 free", output, re.MULTILINE
    )
    assert "─ waiting  no place now: " in output
    assert left(home) == []


def test_explain_page(home: Path) -> None:
    output = run_commands(block(section("docs/explain.md", "Try it")), home).stdout
    assert re.search(r"^PodCliqueSet default/packed: 0/2 .*\n1\. NoOperatorLeading", output, re.MULTILINE)
    assert re.search(r"^PodCliqueSet default/packed: 2/2 .*\nnothing waits$", output, re.MULTILINE)
    assert re.search(r"^cluster +█+░+ +32/128 free, 16 nodes", output, re.MULTILINE)
    assert re.search(r"^default +whole +InsufficientResources +", output, re.MULTILINE)
    assert re.search(r"^1\. InsufficientResources, PodGang whole-\d", output, re.MULTILINE)
    assert re.search(r"^gang whole-\d: 8 pods, in one rack, needs 64 nvidia.com/gpu$", output, re.MULTILINE)
    assert re.search(r"rack z0/z0-b0/z0-b0-r\d +8 +32 of 64 +32 +\d of 8$", output, re.MULTILINE)
    assert '"code": "InsufficientResources"' in output
    assert left(home) == []


def test_updates_and_recovery_pages(home: Path) -> None:
    """The commands of the second page run on the cluster of the first."""
    *commands, kill, down_ = block(section("docs/updates.md", "Try it"))
    recovery = block((ROOT / "docs/recovery.md").read_text())
    assert len(recovery) == 2
    output = run_commands([*commands, *recovery, kill, down_], home).stdout
    assert re.search(r"^chat-0-\S+ +example.com/\S+:2$", output, re.MULTILINE)
    for reason in ("UpdateStarted", "ReplicaUpdated", "UpdateFinished"):
        assert len(re.findall(rf"\b{reason}\b", output)) == 1
    assert "podcliqueset.grove.io/chat annotated" in output
    assert left(home) == []


def test_start_order_page(home: Path) -> None:
    output = run_commands(block(section("docs/start-order.md", "Try it")), home).stdout
    looks = output.split("NAME ")[1:]
    order = [line.split("-")[2] for line in looks[-1].splitlines() if line.startswith("ordered-0-")]
    assert order == ["store", "prefill", "prefill", "decode", "decode"]
    assert "waiting for ordered-0-store (0 of 1 ready)" in output
    assert left(home) == []
