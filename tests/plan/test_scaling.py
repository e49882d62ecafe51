"""Scale-out, scale-in and scale to 0 of a clique, a group and the set."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from grove import timing
from grove.api.intents import Delete, Intent
from grove.plan.model import Plan
from grove.plan.replica import plan_replica
from grove.plan.scale_in import plan_scale_in
from tests.plan.builders import a_set
from tests.plan.simulator import actors
from tests.plan.simulator.invariants import check_history, check_settled
from tests.plan.simulator.simulator import Simulator, settled


def running(cliques: str, groups: str = "", **kwargs) -> Simulator:
    """A set with all pods ready."""
    sim = Simulator(a_set(cliques, groups, **kwargs))
    for _ in range(2):
        sim.settle()
        actors.run_all(sim)
    sim.settle()
    return sim


def sent(sim: Simulator, index: int = 0) -> list[str]:
    """The ids of the next plan, after its execution."""
    plan = sim.plan(index)
    assert sim.execute(plan)
    return [" ".join(intent.id.split()[:2]) for intent in plan.intents]


def cliques(sim: Simulator) -> list[str]:
    return sorted(sim.api.all("PodClique"))


def test_clique_scale_out_names_new_pods_then_creates_them():
    sim = running("a:2/1")
    before = set(sim.pods())
    sim.scale("PodClique", "wl-0-a", 4)
    assert sent(sim) == ["patch PodGang", "create Pod", "create Pod"]
    assert before < set(sim.pods())
    assert sorted(pod.spec.hostname for pod in sim.pods().values()) == [f"wl-0-a-{n}" for n in range(4)]


def test_clique_scale_in_confirms_count_before_deleting_pod():
    sim = running("a:3/1")
    sim.scale("PodClique", "wl-0-a", 1)
    assert sent(sim) == ["patch PodClique", "patch PodGang", "delete Pod", "delete Pod"]
    actors.finish_terminating(sim)
    check_settled(sim)
    check_history(sim)


def test_clique_scaled_to_0_leaves_gang_and_returns():
    sim = running("a:1 b:2/1")
    sim.scale("PodClique", "wl-0-b", 0)
    sim.settle()
    assert list(sim.references("wl-0")) == ["wl-0-a"]
    assert sim.plan().report.available
    sim.scale("PodClique", "wl-0-b", 1)
    sim.settle()
    assert list(sim.references("wl-0")) == ["wl-0-a", "wl-0-b"]
    check_settled(sim)
    check_history(sim)


def test_scaled_count_is_never_reset():
    sim = running("a:1", "x:2/1=a")
    sim.scale("PodClique", "wl-0-x-0-a", 3)
    sim.scale("PodCliqueScalingGroup", "wl-0-x", 4)
    sim.api.patch("PodClique", "wl-0-x-0-a", {"spec": {"roleName": "edited"}})
    sim.settle()
    assert sim.api.get("PodClique", "wl-0-x-0-a")["spec"]["replicas"] == 3
    assert sim.api.get("PodCliqueScalingGroup", "wl-0-x")["spec"]["replicas"] == 4


def test_template_count_change_keeps_existing_replicas():
    sim = running("a:1")
    template = a_set("a:3/1")["spec"]["template"]
    sim.api.patch("PodCliqueSet", "wl", {"spec": {"template": template}})
    sim.settle()
    assert len(sim.pods()) == 1


def test_group_scale_out_creates_scaled_gangs_from_0():
    sim = running("a:1 b:1", "x:2/2=b")
    sim.scale("PodCliqueScalingGroup", "wl-0-x", 4)
    sim.settle()
    assert sorted(sim.api.all("PodGang")) == ["wl-0", "wl-0-x-0", "wl-0-x-1"]
    assert list(sim.references("wl-0-x-1")) == ["wl-0-x-3-b"]


def test_group_scale_in_deletes_highest_replicas_first():
    sim = running("a:1 b:1", "x:4/1=b")
    sim.scale("PodCliqueScalingGroup", "wl-0-x", 2)
    assert sorted(sent(sim)) == sorted(
        ["patch PodCliqueScalingGroup", "patch PodCliqueSet"]
        + ["delete PodGang", "delete Pod", "delete PodClique"] * 2
    )
    assert cliques(sim) == ["wl-0-a", "wl-0-x-0-b", "wl-0-x-1-b"]
    assert sorted(sim.api.all("PodGang")) == ["wl-0", "wl-0-x-0"]
    check_history(sim)


def test_group_scaled_to_0_leaves_base_gang_and_returns():
    sim = running("a:1 b:1", "x:3/2=b")
    sim.scale("PodCliqueScalingGroup", "wl-0-x", 0)
    sim.settle()
    assert list(sim.references("wl-0")) == ["wl-0-a"]
    assert cliques(sim) == ["wl-0-a"]
    assert sim.plan().report.available
    actors.finish_terminating(sim)
    sim.scale("PodCliqueScalingGroup", "wl-0-x", 2)
    sim.settle()
    assert list(sim.references("wl-0")) == ["wl-0-a", "wl-0-x-0-b", "wl-0-x-1-b"]
    check_settled(sim)
    check_history(sim)


def test_surplus_set_replica_is_deleted_with_all_objects():
    sim = running("a:1 b:2/1", "x:2/1=b", replicas=2)
    sim.settle(1)
    first = set(sim.pods("wl-0-a"))
    sim.scale("PodCliqueSet", "wl", 1)
    actors.finish_scale_in(sim, 1)
    assert sim.snapshot(1).cliques == sim.snapshot(1).groups == sim.snapshot(1).gangs == {}
    assert sim.snapshot(1).pods == ()
    assert sorted(sim.api.all("Service")) == ["wl-0"]
    assert first <= set(sim.pods())
    check_history(sim)


def kinds(plan: Plan) -> set[str]:
    """The kinds that a plan deletes."""
    return {intent.target.kind for intent in plan.intents if isinstance(intent, Delete)}


def test_other_objects_deleted_after_all_surplus_pods_gone():
    sim = running("a:1", replicas=3)
    for index in (1, 2):
        sim.settle(index)
    actors.run_all(sim)
    sim.scale("PodCliqueSet", "wl", 1)

    def together() -> Plan:
        return plan_scale_in([sim.snapshot(1), sim.snapshot(2)], sim.now)

    assert kinds(together()) == {"PodGang", "Pod", "PodClique"}
    sim.execute(together())
    assert [name for name in sim.api.all("PodClique") if name != "wl-0-a"] == []
    assert (together().intents, together().requeue_at) == ((), sim.now + timing.SCALE_IN_POD_WAIT)
    actors.finish_terminating(sim, sim.pods("wl-1-a"))
    assert together().intents == (), "the pods of the other replica still exist"
    actors.finish_terminating(sim)
    assert kinds(together()) == {"Service"}
    sim.execute(together())
    assert together() == Plan()


def prior(intents: Sequence[Intent], of: str) -> set[str]:
    """Everything that must have succeeded before an intent is executed."""
    after, found, rest = {intent.id: intent.after for intent in intents}, set[str](), [of]
    while rest:
        rest += set(after.get(rest.pop(), ())) - found
        found.update(rest)
    return found


@pytest.mark.parametrize("replicas", [1, 3])
def test_cliques_groups_and_gangs_deleted_before_last_pod(replicas):
    """Upstream's tests count them at the moment when the last pod is gone."""
    sim = settled(a_set("a:2 b:1", "x:1/1=b", replicas=replicas))
    sim.scale("PodCliqueSet", "wl", 0)
    plan = plan_scale_in([sim.snapshot(index) for index in range(replicas)], sim.now)
    others = {intent.id for intent in plan.intents if intent.id.startswith("delete PodC")}
    assert others == {
        f"delete {name}"
        for index in range(replicas)
        for name in (
            f"PodClique ns/wl-{index}-a",
            f"PodClique ns/wl-{index}-x-0-b",
            f"PodCliqueScalingGroup ns/wl-{index}-x",
        )
    }
    pods = {f"delete Pod ns/{name}" for name in sim.pods()}
    (last,) = (pod for pod in pods if prior(plan.intents, pod) & others)
    assert prior(plan.intents, last) == {intent.id for intent in plan.intents} - {last}
    for id_ in (*pods, *others):
        gang = f"delete PodGang ns/wl-{id_.split('wl-')[1][0]}"
        assert {"patch PodCliqueSet ns/wl", gang} <= prior(plan.intents, id_)
    for pod in pods - {last}:
        clique = f"delete PodClique ns/{pod.removeprefix('delete Pod ns/').rpartition('-')[0]}"
        assert pod in prior(plan.intents, clique), "or the garbage collector deletes it, too"
    assert sim.execute(plan)
    assert (cliques(sim), sim.pods()) == ([], {})


def test_pod_whose_clique_is_gone_waits_for_no_other_clique():
    """The delete of another clique failed: it may fail for long, and the pod holds GPUs."""
    sim = running("a:1 b:1")
    sim.scale("PodCliqueSet", "wl", 0)
    sim.api.delete("PodClique", "wl-0-b")
    intents = plan_scale_in([sim.snapshot()], sim.now).intents
    (pod,) = (f"delete Pod ns/{name}" for name in sim.pods("wl-0-b"))
    assert not [id_ for id_ in prior(intents, pod) if id_.startswith("delete PodClique")]


def test_pod_whose_clique_is_gone_is_deleted():
    """The operator stopped after the clique was deleted, and before the last pod was."""
    sim = running("a:2 b:2", "x:2/1=b")
    sim.scale("PodCliqueSet", "wl", 0)
    sim.api.delete("PodClique", "wl-0-a")
    sim.settle()
    assert [name for name, pod in sim.pods().items() if not pod.metadata.deletion_timestamp] == []


def test_stuck_pods_delay_other_deletes_for_limited_time():
    sim = running("a:1", replicas=1)
    sim.scale("PodCliqueSet", "wl", 0)
    sim.settle()
    assert sim.api.all("Service")
    sim.now += timing.SCALE_IN_POD_WAIT
    sim.settle()
    assert not sim.api.all("Service")
    assert sim.pods()


@pytest.mark.parametrize("gone", [False, True])
def test_replica_scaled_out_during_deletion_is_completed(gone):
    sim = running("a:2", replicas=1)
    before = set(sim.pods())
    sim.scale("PodCliqueSet", "wl", 0)
    sim.settle()
    if gone:
        actors.finish_terminating(sim)
    sim.scale("PodCliqueSet", "wl", 1)
    sim.settle()
    actors.finish_terminating(sim)
    check_settled(sim)
    check_history(sim)
    assert len(sim.pods()) == 2
    assert before.isdisjoint(sim.pods()), "no name is used twice"


@pytest.mark.parametrize(
    ("kind", "name", "count", "forgets"),
    [
        ("PodClique", "wl-0-a", 1, "patch PodGang ns/wl-0"),
        ("PodClique", "wl-0-a", 0, "patch PodGang ns/wl-0"),
        ("PodCliqueScalingGroup", "wl-0-x", 1, "delete PodGang ns/wl-0-x-0"),
        ("PodCliqueScalingGroup", "wl-0-x", 0, "patch PodGang ns/wl-0"),
        ("PodCliqueSet", "wl", 0, "delete PodGang ns/wl-0"),
    ],
)
def test_scale_in_confirms_count_then_gang_then_deletes_pod(kind, name, count, forgets):
    sim = running("a:2/1 b:1", "x:2/1=b")
    sim.scale(kind, name, count)
    intents = {intent.id: intent for intent in sim.plan().intents}
    gangs = {gang: sim.references(gang) for gang in sim.api.all("PodGang")}
    assert f"patch {kind} ns/{name}" in intents[forgets].after
    for id_, intent in intents.items():
        if id_.startswith("delete Pod "):
            (gang,) = (gang for gang in gangs if any(intent.target.name in n for n in gangs[gang].values()))
            assert {f"patch PodGang ns/{gang}", f"delete PodGang ns/{gang}"} & set(intent.after), id_


def test_set_at_0_replicas_plans_nothing():
    sim = Simulator(a_set("a:1", replicas=0))
    assert sim.plan().intents == ()


def test_terminating_set_plans_nothing_for_replicas():
    body = a_set("a:1")
    body["metadata"]["finalizers"] = ["grove.io/podcliqueset.grove.io"]
    sim = Simulator(body)
    sim.settle()
    sim.api.delete("PodCliqueSet", "wl")
    assert sim.plan() == type(sim.plan())()


@pytest.mark.parametrize("kind", ["PodClique", "PodCliqueScalingGroup", "PodCliqueSet"])
def test_stale_count_is_refused_before_deleting_a_pod(kind):
    """The count was 1, is 3 and all 3 run; a former leader still has 1 in its cache."""
    sim = Simulator(a_set("a:1 b:1", "x:1/1=b"))
    sim.settle()
    name = {"PodClique": "wl-0-a", "PodCliqueScalingGroup": "wl-0-x", "PodCliqueSet": "wl"}[kind]
    sim.scale(kind, name, 0 if kind == "PodCliqueSet" else 1)
    old = len(sim.api.past[kind])
    sim.scale(kind, name, 1 if kind == "PodCliqueSet" else 3)
    for _ in range(2):
        sim.settle()
        actors.run_all(sim)
    before = sim.pods(), all_pods(sim)
    stale = sim.plan(lag={kind: len(sim.api.past[kind]) - old})
    assert any(intent.id.startswith("delete Pod ") for intent in stale.intents)
    assert not sim.execute(stale)
    assert (sim.pods(), all_pods(sim)) == before


def all_pods(sim: Simulator) -> dict[str, dict[str, list[str]]]:
    return {gang: sim.references(gang) for gang in sim.api.all("PodGang")}


def test_scaled_gang_stays_while_its_group_is_unseen():
    """The group lost its labels, so the cache has not got it: its create, not its template, decides."""
    sim = settled(a_set("a:1 b:1", "x:1/1=b"))
    sim.scale("PodCliqueScalingGroup", "wl-0-x", 3)
    sim.settle()
    unseen = replace(sim.snapshot(), groups={})
    deletes = [intent for intent in plan_replica(unseen, sim.now).intents if "delete PodGang" in intent.id]
    assert deletes
    assert all("create PodCliqueScalingGroup ns/wl-0-x" in intent.after for intent in deletes)


# Events.


def events(plan: Plan) -> list[tuple[str, str]]:
    """The object of each event and its note, without the random part of the names of pods."""
    return [(event.regarding.name, event.note.rpartition("-")[0]) for event in plan.events]


def test_pod_emits_event_when_gang_with_similar_name_goes():
    """The gang of group replica 1 is wl-0-x-0, and the pods of group replica 0 are wl-0-x-0-b-..."""
    sim = running("a:1 b:2/1", "x:2/1=b")
    sim.scale("PodCliqueScalingGroup", "wl-0-x", 1)
    sim.scale("PodClique", "wl-0-x-0-b", 1)
    plan = sim.plan()
    assert sorted(event.reason for event in plan.events) == ["PodDeleteSuccessful", "PodGangDeleteSuccessful"]
    assert events(plan) == [("wl-0-x-0-b", "Deleted pod wl-0-x-0-b"), ("wl", "Deleted PodGang wl-0-x")]
    deleted = [intent.target for intent in plan.intents if isinstance(intent, Delete)]
    assert [target.kind for target in deleted] == ["Pod", "PodGang", "Pod", "PodClique", "Pod"]


def test_clique_that_leaves_base_gang_emits_events():
    sim = running("a:1 b:2/1", "x:1/1=b")
    sim.scale("PodCliqueScalingGroup", "wl-0-x", 0)
    pods = [("wl-0-x-0-b", "Deleted pod wl-0-x-0-b")] * 2
    assert events(sim.plan()) == [*pods, ("wl", "Deleted PodClique wl-0-x-0")]


def test_deleted_replica_emits_event_for_base_gang_only():
    sim = running("a:2 b:1", "x:2/1=b", replicas=2)
    sim.settle(1)
    sim.api.patch("PodCliqueSet", "wl", {"spec": {"replicas": 1}})
    plan = plan_scale_in([sim.snapshot(1)], sim.now)
    gangs = [intent.id for intent in plan.intents if intent.id.startswith("delete PodGang")]
    assert (len(gangs), len(plan.events)) == (2, 1)
    (event,) = plan.events
    assert (event.regarding.name, event.note) == ("wl", "Deleted PodGang wl-1")
    assert event.together == "Deleted {count} PodGangs"
    pods = [intent for intent in plan.intents if intent.id.startswith("delete Pod ")]
    assert {intent.regarding.name for intent in pods} == {"wl-1-a", "wl-1-x-0-b", "wl-1-x-1-b"}
