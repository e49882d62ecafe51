"""Held replicas keep their pods whatever they ask for, and a plan costs what they have."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from grove.api.error_codes import Operation, describe
from grove.api.intents import Create, Delete, Intent
from grove.api.naming import labels, well_known
from grove.api.types.common import LastError
from grove.api.types.podclique import PodClique
from grove.api.types.podcliquescalinggroup import PodCliqueScalingGroup
from grove.plan.desired import limits
from grove.plan.desired.expand import expand
from grove.plan.desired.template_hash import generation_hash
from grove.plan.model import Plan, ReplicaReport, ReplicaSummary
from grove.plan.podcliqueset import plan_set
from grove.plan.replica import plan_replica
from grove.plan.snapshot import SetSnapshot, Snapshot
from tests.plan.builders import a_set, read_set
from tests.plan.simulator import actors
from tests.plan.simulator.simulator import Simulator, settled

HUGE = 2**31 - 1
LIMIT = 50_000


def running(body: dict[str, Any] | None = None) -> Simulator:
    sim = settled(body or a_set("a:3/1 b:2/1 c:1", "x:3/1=b,c"))
    actors.run_all(sim)
    sim.settle()
    return sim


def asking(snapshot: Snapshot, **counts: int) -> Snapshot:
    """The same replica, with other counts on its cliques and groups: by name, `_` for `-`."""
    wanted = {f"wl-0-{name.replace('_', '-')}": count for name, count in counts.items()}
    cliques = {name: _scaled(found, wanted.get(name)) for name, found in snapshot.cliques.items()}
    groups = {name: _scaled(found, wanted.get(name)) for name, found in snapshot.groups.items()}
    changed = replace(snapshot, cliques=cliques, groups=groups)
    held = limits.is_held(changed.workload, 0, groups, cliques, LIMIT, LIMIT)
    return replace(changed, held=held)


def _scaled(found: Any, count: int | None) -> Any:
    return found if count is None else replace(found, spec=replace(found.spec, replicas=count))


def planned(sim: Simulator, snapshot: Snapshot) -> Plan:
    return plan_replica(snapshot, sim.now)


def created_kinds(intents: tuple[Intent, ...]) -> list[str]:
    return [intent.target.kind for intent in intents if isinstance(intent, Create)]


@pytest.mark.parametrize(
    "counts",
    [{"a": HUGE}, {"x": HUGE}, {"a": HUGE, "x": HUGE}, {"x_0_b": HUGE}, {"a": 60_000}, {"x": 40_000}],
)
def test_replica_above_limit_is_held(counts):
    sim = running()
    snapshot = asking(sim.snapshot(), **counts)
    assert snapshot.held
    plan = planned(sim, snapshot)
    assert plan.intents == ()
    assert plan.partial
    assert plan.report is not None
    assert plan.report.available


def test_held_replica_that_does_not_exist_is_not_created():
    sim = Simulator(a_set(f"a:{HUGE} b:1", f"x:{HUGE}/1=b"))
    plan = planned(
        sim, Snapshot(workload=read_set(a_set(f"a:{HUGE} b:1", f"x:{HUGE}/1=b")), index=0, held=True)
    )
    assert (plan.intents, plan.status_updates, plan.partial) == ((), (), True)
    assert plan.report is not None
    assert not plan.report.available


def test_held_replica_pods_are_replaced_and_scaled_in():
    sim = running()
    lost = next(iter(sim.pods("wl-0-a")))
    sim.api.delete("Pod", lost)
    actors.finish_terminating(sim)
    plan = planned(sim, asking(sim.snapshot(), a=HUGE))
    assert created_kinds(plan.intents) == ["Pod"]
    sim.settle()
    plan = planned(sim, asking(sim.snapshot(), a=HUGE, x=1))
    assert created_kinds(plan.intents) == []
    gone = {intent.target.name for intent in plan.intents if isinstance(intent, Delete)}
    assert {"wl-0-x-1-b", "wl-0-x-2-b", "wl-0-x-0", "wl-0-x-1"} <= gone
    assert not any(name.startswith(("wl-0-a-", "wl-0-x-0-")) for name in gone)


def test_held_replica_missing_part_not_created_not_available():
    sim = running()
    snapshot = asking(sim.snapshot(), a=HUGE)
    cliques = {name: found for name, found in snapshot.cliques.items() if "-x-2" not in name}
    gangs = {name: found for name, found in snapshot.gangs.items() if name != "wl-0-x-1"}
    plan = planned(sim, replace(snapshot, cliques=cliques, gangs=gangs))
    assert not {"PodClique", "PodGang", "PodCliqueScalingGroup"} & set(created_kinds(plan.intents))
    less = {name: found for name, found in cliques.items() if name != "wl-0-a"}
    without = {name: replace(found, spec=replace(found.spec, pod_groups=())) for name, found in gangs.items()}
    plan = planned(sim, replace(snapshot, cliques=less, gangs=without, pods=()))
    assert plan.report is not None
    assert not plan.report.available


def test_huge_min_available_with_startup_order_is_fast():
    body = a_set("a:1 b:1", "x:2/1=a", cliqueStartupType="CliqueStartupTypeInOrder")
    sim = running(body)
    body["spec"]["template"]["podCliqueScalingGroups"][0]["minAvailable"] = HUGE
    snapshot = replace(asking(sim.snapshot()), workload=read_set(body))
    assert limits.is_held(snapshot.workload, 0, snapshot.groups, snapshot.cliques, LIMIT, LIMIT)
    plan_replica(replace(snapshot, held=True), sim.now)


def test_gang_above_object_size_is_reported_not_written():
    sim = running()
    snapshot = asking(sim.snapshot(), a=40_000)
    assert snapshot.held
    plan = planned(sim, snapshot)
    (user_error,) = plan.errors
    assert user_error.code == "ERR_EXCEED_PODGANG_SIZE"
    assert "40003 pods" in user_error.message
    assert plan.intents == ()
    assert not asking(sim.snapshot(), a=10_000).held


def test_released_replica_continues_creation():
    sim = running()
    sim.scale("PodClique", "wl-0-a", 5)
    assert planned(sim, replace(sim.snapshot(), held=True)).intents == ()
    sim.settle()
    assert len(sim.pods("wl-0-a")) == 5


COUNTS = st.integers(0, 4)


@given(COUNTS, COUNTS, COUNTS, st.dictionaries(st.sampled_from(["a", "x", "x-0-b", "x-1-c"]), COUNTS))
def test_computed_pod_counts_equal_expanded_ones(a, b, x, live):
    workload = read_set(a_set(f"a:{a} b:{b} c:1", f"x:{x}/0=b,c"))
    found = {f"wl-0-{name}": count for name, count in live.items()}
    layout = expand(workload, 0, found, found)
    world_cliques = {
        clique.name: a_live_clique(clique.name, clique.template.name, found[clique.name])
        for clique in layout.cliques
        if clique.name in found
    }
    groups = {"wl-0-x": a_live_group(found["wl-0-x"])} if "wl-0-x" in found else {}
    asked = limits.pods_asked(workload, 0, groups, world_cliques)
    expected = sum(max(1, clique.replicas) for clique in layout.cliques)
    # A group counts as one replica at least, and cliques of those that it does not have are surplus.
    one = max(1, b) + 1 if not layout.groups[0].replicas else 0
    assert asked == expected + one


def a_live_clique(name: str, template: str, count: int) -> PodClique:
    meta = {"name": name, "labels": {labels.CLIQUE_TEMPLATE: template}}
    return msgspec.convert({"metadata": meta, "spec": {"podSpec": Raw(b"{}"), "replicas": count}}, PodClique)


def a_live_group(count: int) -> PodCliqueScalingGroup:
    body = {"metadata": {"name": "wl-0-x"}, "spec": {"cliqueNames": [], "replicas": count}}
    return msgspec.convert(body, PodCliqueScalingGroup)


# The set.


def test_set_above_limit_reports_error_and_existing_counts():
    sim = settled(a_set("a:1", replicas=3))
    actors.run_all(sim)
    sim.reconcile_all()
    workload = read_set(sim.api.get("PodCliqueSet", "wl"))
    huge = replace(workload, spec=replace(workload.spec, replicas=HUGE))
    user_error = limits.too_many_pods(HUGE, LIMIT)
    plan = plan_set(SetSnapshot(huge, sim.reports, too_many=user_error), sim.now)
    (status_update,) = plan.status_updates
    assert (status_update.desired.replicas, status_update.desired.available_replicas) == (HUGE, 3)
    assert plan.errors == (user_error,)
    assert plan.partial
    (event,) = plan.events
    assert (event.regarding.kind, event.reason, event.warning) == ("PodCliqueSet", "PodLimitExceeded", True)
    assert event.note == user_error.message
    assert f"{HUGE} pods" in user_error.message
    assert "at most 50000" in user_error.message
    assert "limits.podsPerSet" in user_error.message


def test_pod_limit_in_status_of_set_emits_no_event():
    user_error = limits.too_many_pods(HUGE, LIMIT)
    description = describe(Operation.SYNC, user_error.code, user_error.message)
    reported = LastError(user_error.code, description, "2026-01-01T00:00:00Z")
    workload = read_set(a_set("a:1"))
    workload = replace(workload, status=replace(workload.status, last_errors=(reported,)))
    plan = plan_set(SetSnapshot(workload, {}, too_many=user_error), 0.0)
    assert (plan.errors, plan.events) == ((user_error,), ())


def test_set_above_limit_is_still_updated():
    workload = read_set(a_set("a:1", replicas=HUGE))
    hash_ = generation_hash(workload)
    status = replace(workload.status, current_generation_hash=hash_[::-1])
    meta = replace(workload.metadata, finalizers=(well_known.SET_FINALIZER,))
    workload = replace(workload, metadata=meta, status=status)
    reports = {
        index: ReplicaReport(1, ReplicaSummary(generation_hash=hash_, update_complete=index == 0))
        for index in (7, 0, 2)
    }
    user_error = limits.too_many_pods(HUGE, LIMIT)
    (decision,) = plan_set(SetSnapshot(workload, reports, too_many=user_error), 0.0).intents
    assert decision.body["status"]["updateProgress"]["currentlyUpdating"][0]["replicaIndex"] == 2


def test_group_of_held_replica_is_scaled_in_to_zero():
    sim = settled(a_set("a:10 b:1", "x:2/1=b"))
    sim.scale("PodCliqueScalingGroup", "wl-0-x", 0)
    held = replace(sim.snapshot(), held=True)
    deleted = {
        intent.target.name for intent in plan_replica(held, sim.now).intents if "delete Pod " in intent.id
    }
    assert deleted == {name for name in sim.pods() if name.startswith("wl-0-x-")}
