"""The live view of a set: lines per change, and the frame that fits the terminal."""

from __future__ import annotations

import io

from rich.console import Console

from grove.cli.commands.demo import SCALED_REPLICAS, SHAPE, TRAINING, WORKLOAD, manifest
from grove.cli.views.live.demo_screen import changes, live_frame, summary
from grove.local.cluster.cluster_shape import parse_shape
from tests.plan.builders import read_set
from tests.plan.simulator import actors
from tests.views.builders import a_simulator, view


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


def test_demo_fits_its_cluster_except_one_gang():
    """The demo after the scale-out, and two gangs of the second set in whole racks."""
    shape = parse_shape(SHAPE)
    template = read_set(manifest(WORKLOAD)).spec.template
    counts = {clique.name: clique.spec.replicas for clique in template.cliques}
    replicas = {group.name: group.replicas for group in template.pod_clique_scaling_groups}
    replicas["decode"] = SCALED_REPLICAS
    hosts = {
        group.name: sum(counts[name] for name in group.clique_names)
        for group in template.pod_clique_scaling_groups
    }
    assert sum(hosts.values()) <= shape.hosts, "the base gang"
    used = sum(hosts[name] * count for name, count in replicas.items())
    assert shape.hosts < used <= shape.hosts * shape.racks, "all of it in one block"
    second = read_set(manifest(TRAINING)).spec
    assert second.template.cliques[0].spec.replicas == shape.hosts
    assert second.replicas == (shape.blocks - 1) * shape.racks + 1
