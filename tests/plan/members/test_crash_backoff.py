"""Ended pods are replaced: the first at once, its successors with growing delays."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from grove.api.naming import annotations
from grove.plan.members.crash_backoff import replacement_due
from tests.plan.builders import a_set
from tests.plan.simulator import actors
from tests.plan.simulator.simulator import Simulator


def failing(times: int, lived: float = 1.0) -> Simulator:
    """A clique of one pod that has failed so many times, each time as soon as possible."""
    sim = Simulator(a_set("a:1"))
    sim.settle()
    for number in range(times):
        if number:
            sim.now = sim.plan().requeue_at or sim.now
            sim.step()
        sim.now += lived
        actors.fail(sim, last(sim))
    return sim


def last(sim: Simulator) -> str:
    (name,) = sim.references("wl-0")["wl-0-a"]
    return name


@pytest.mark.parametrize("written", ["9" * 5000, "9" * 12, "999999", "-1", "1e9"])
def test_edited_failure_counts_cost_no_time_and_no_memory(written):
    sim = failing(1)
    pod = sim.pods()[last(sim)]
    edited = replace(pod.metadata, annotations={annotations.PRIOR_FAILURES: written})
    due, _ = replacement_due(replace(pod, metadata=edited))
    assert due - sim.now <= 300


@pytest.mark.parametrize(
    ("times", "delay"), [(1, 0), (2, 10), (3, 20), (4, 40), (5, 80), (6, 160), (7, 300), (8, 300)]
)
def test_delay_doubles_up_to_five_minutes(times, delay):
    sim = failing(times)
    due, failures = replacement_due(sim.pods()[last(sim)])
    assert (due - sim.now, failures) == (delay, times)


def test_ended_pod_keeps_slot_and_requeues_until_due():
    sim = failing(2)
    plan = sim.plan()
    assert plan.intents == ()
    assert plan.requeue_at == sim.now + 10
    sim.now = plan.requeue_at
    assert [intent.id.split()[0] for intent in sim.step().intents] == ["patch", "delete", "create"]


def test_failure_count_is_kept_on_the_pods():
    sim = failing(3)
    assert sim.pods()[last(sim)].metadata.annotations[annotations.PRIOR_FAILURES] == "2"


def test_long_lived_pod_resets_failure_count():
    sim = failing(3, lived=601.0)
    assert replacement_due(sim.pods()[last(sim)]) == (sim.now, 1)


def test_malformed_failure_count_is_ignored():
    sim = failing(2)
    name = last(sim)
    sim.api.patch("Pod", name, {"metadata": {"annotations": {annotations.PRIOR_FAILURES: "many"}}})
    assert replacement_due(sim.pods()[name])[1] == 1


def test_failure_count_survives_crash_after_naming_successor():
    sim = failing(2)
    sim.now = sim.plan().requeue_at
    gang, delete, create = sim.plan().intents
    assert delete.id in create.after, "the pod that ended is deleted before its successor is created"
    sim.api.patch("PodGang", "wl-0", gang.body)
    again = next(intent for intent in sim.plan().intents if intent.id.startswith("create"))
    assert again.id == create.id
    assert again.body["metadata"]["annotations"][annotations.PRIOR_FAILURES] == "2"
