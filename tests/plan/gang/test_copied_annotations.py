"""Annotations of a set on its gangs: a changed copy waits for the next write of the gang, unless it has an
effect."""

from __future__ import annotations

from typing import Any

import pytest

from grove.plan.writes.copied_annotations import only_copies_change
from grove.schedulers.backend import SchedulerBackend
from grove.schedulers.kai import Kai
from grove.schedulers.kube import Kube
from grove.schedulers.lpx import Lpx
from grove.schedulers.volcano import Volcano
from tests.plan.simulator.simulator import Simulator
from tests.schedulers.builders import a_body


def settled(scheduler: SchedulerBackend | None) -> Simulator:
    sim = Simulator(a_body("a:2 b", "x:2/1=b"))
    sim.scheduler = scheduler
    sim.settle()
    return sim


def annotate(sim: Simulator, kind: str = "PodCliqueSet", name: str = "wl", **changes: Any) -> None:
    sim.api.patch(kind, name, {"metadata": {"annotations": changes}}, by="user")


def annotations(sim: Simulator, kind: str, name: str) -> dict[str, str]:
    found: dict[str, str] = sim.api.get(kind, name)["metadata"]["annotations"]
    return found


@pytest.mark.parametrize("scheduler", [Kube(), Kai(), Volcano(), Lpx()])
@pytest.mark.parametrize("change", [{"note": "other"}, {"note": None}, {"more": "of them"}])
def test_changed_copy_alone_causes_no_write(scheduler: SchedulerBackend, change: dict[str, Any]):
    sim = settled(scheduler)
    annotate(sim, **change)
    assert sim.plan().intents == ()


@pytest.mark.parametrize("scheduler", [Kube(), Kai(), Volcano()])
def test_changed_copies_are_in_next_write_of_gang(scheduler: SchedulerBackend):
    sim = settled(scheduler)
    annotate(sim, note=None, more="of them")
    sim.api.patch("PodClique", "wl-0-a", {"spec": {"replicas": 3}}, by="user")
    sim.settle()
    base, scaled = (annotations(sim, "PodGang", name) for name in ("wl-0", "wl-0-x-0"))
    assert (base.get("note"), base.get("more")) == (None, "of them")
    assert (scaled.get("note"), scaled.get("more")) == ("mine", None), "nothing else of it is to be written"


@pytest.mark.parametrize(
    ("scheduler", "key", "kinds"),
    [
        (Kai(), "kai.scheduler/topology", "PodGang PodGroup"),
        (Kai(), "scheduling.run.ai/preemptibility", "PodGang PodGroup"),
        (Volcano(), "scheduling.grove.io/volcano-queue", "PodGang PodGroup"),
        (Volcano(), "volcano.sh/preemptable", "PodGang"),
        (None, "note", "PodGang"),
    ],
    ids=lambda value: str(getattr(value, "name", value)),
)
def test_annotation_that_scheduler_reads_is_written_at_once(scheduler, key, kinds):
    sim = settled(scheduler)
    annotate(sim, **{key: "other"})
    assert {intent.target.kind for intent in sim.plan().intents} == set(kinds.split())
    sim.settle()
    assert annotations(sim, "PodGang", "wl-0")[key] == "other"


def test_removed_annotation_that_scheduler_reads_goes_at_once():
    sim = settled(Volcano())
    annotate(sim, **{"scheduling.grove.io/volcano-queue": None})
    sim.settle()
    assert "scheduling.grove.io/volcano-queue" not in annotations(sim, "PodGang", "wl-0")


def test_repaired_gang_gets_changed_copies_too():
    sim = settled(Kai())
    annotate(sim, note="other")
    annotate(sim, "PodGang", "wl-0", **{"kai.scheduler/skip-podgrouper": None})
    sim.settle()
    assert (
        annotations(sim, "PodGang", "wl-0").items()
        >= {
            "kai.scheduler/skip-podgrouper": "true",
            "note": "other",
        }.items()
    )
    assert annotations(sim, "PodGroup", "wl-0")["note"] == "mine", "its own write carries it"


def test_new_gang_has_current_annotations():
    sim = settled(Kube())
    annotate(sim, note="other")
    sim.api.patch("PodCliqueScalingGroup", "wl-0-x", {"spec": {"replicas": 3}}, by="user")
    sim.settle()
    assert annotations(sim, "PodGang", "wl-0-x-1")["note"] == "other"
    assert annotations(sim, "PodGang", "wl-0-x-0")["note"] == "mine"


@pytest.mark.parametrize(
    ("patch", "copies"),
    [
        ({"metadata": {"annotations": {"a": "1"}}}, True),
        ({"metadata": {"annotations": {"a": None, "gone": None}}}, True),
        ({"metadata": {"annotations": {"a": "not of the set"}}}, False),
        ({"metadata": {"annotations": {"grove.io/placement": None}}}, False),
        ({"metadata": {"annotations": {"a": "1", "vendor/queue": "q"}}}, False),
        ({"metadata": {"annotations": {"a": "1"}, "labels": {"b": "2"}}}, False),
        ({"metadata": {"annotations": {"a": "1"}}, "spec": {"podgroups": []}}, False),
        ({"metadata": {"labels": {"a": "1"}}}, False),
        ({"spec": {}}, False),
    ],
)
def test_patch_of_copies_only(patch: dict[str, Any], copies: bool):
    of_set = {"a": "1", "vendor/queue": "q", "grove.io/placement": "p"}
    assert only_copies_change(patch, of_set, ("vendor/",)) is copies
