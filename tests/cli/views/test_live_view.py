"""The live view of a set: lines per change, and the frame that fits the terminal."""

from __future__ import annotations

import io

from rich.console import Console

from grove.cli.commands.demo import NAME, SCALED_REPLICAS, workload
from grove.cli.views.live_view import changes, live_frame, summary
from tests.cli.views.builders import a_simulator, view
from tests.plan.builders import read_set
from tests.plan.simulator import actors


def test_change_is_printed_once():
    sim = a_simulator(running=False)
    first = view(sim)
    assert list(changes(None, first)) == [
        "clique demo-0-router: 0/3 ready",
        "clique demo-0-model-0-leader: 0/1 ready",
        "clique demo-0-model-1-leader: 0/1 ready",
        "gang demo-0: Pending",
        "gang demo-0-model-0: Pending",
    ]
    assert list(changes(first, first)) == []
    actors.run(sim, *sim.pods("demo-0-router"))
    sim.settle()
    assert list(changes(first, view(sim))) == ["clique demo-0-router: 3/3 ready"]


def test_deleted_gang_is_printed():
    sim = a_simulator()
    before = view(sim)
    sim.scale("PodCliqueScalingGroup", "demo-0-model", 1)
    sim.settle()
    assert list(changes(before, view(sim))) == ["gang demo-0-model-0: deleted"]


def shown(width: int, height: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, height=height, force_terminal=True, color_system=None)
    console.print(live_frame(view(a_simulator()), width, height))
    return console.file.getvalue().splitlines()  # type: ignore[attr-defined]


def test_frame_shows_pods_if_they_fit():
    assert len(shown(100, 40)) == 13 + 1
    assert len(shown(100, 14)) == 8 + 1, "too low for pods"
    assert max(map(len, shown(40, 40))) <= 40


def test_summary_counts_pod_states():
    assert summary(view(a_simulator())) == "5 pods: 5 ready"
    assert summary(view(a_simulator(running=False))) == "5 pods: 1 gated, 4 unscheduled"


def test_demo_workload_fits_its_cluster_twice():
    """The demo after the scale-out, and with a second replica after scaling in again."""
    body = workload()
    found = read_set(body)
    assert found.metadata.name == NAME
    members = {
        group.name: (group.replicas, group.clique_names)
        for group in found.spec.template.pod_clique_scaling_groups
    }
    counts = {clique.name: clique.spec.replicas for clique in found.spec.template.cliques}

    def nodes(decode: int) -> int:
        prefill = members["prefill"][0] * sum(counts[name] for name in members["prefill"][1])
        return prefill + decode * sum(counts[name] for name in members["decode"][1])

    assert nodes(decode=SCALED_REPLICAS) <= 16
    assert 2 * nodes(decode=1) <= 16
