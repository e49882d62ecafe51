"""Scheduler objects of gangs are created before the pods and repaired."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from grove import timing
from grove.plan.replica import plan_replica
from grove.schedulers.backend import SchedulerBackend, SchedulerObject
from grove.schedulers.kai import Kai
from grove.schedulers.kube import Kube
from grove.schedulers.kube_podgroups import V1Alpha2, V1Beta1
from grove.schedulers.volcano import Volcano
from grove.topology.constraints import ResolvedTopology
from tests.plan.simulator.actors import force_delete, run_all, schedule
from tests.plan.simulator.simulator import Run, Simulator
from tests.schedulers.builders import RACK, ZONE, a_body
from tests.topology.builders import a_topology, missing

GANGS = ("wl-0", "wl-0-x-0")


def a_simulator(
    scheduler: SchedulerBackend | None,
    wishes: str = "",
    topology: ResolvedTopology | None = None,
    **options: Any,
) -> Simulator:
    sim = Simulator(a_body("a:2 b", "x:2/1=b", wishes, **options))
    sim.scheduler, sim.topology = scheduler, topology
    return sim


def settled(*args: Any, **options: Any) -> Simulator:
    sim = a_simulator(*args, **options)
    sim.settle()
    return sim


@pytest.mark.parametrize("scheduler", [Kai(), Volcano(), Kube(V1Alpha2())])
def test_gang_then_scheduler_object_then_pods(scheduler: SchedulerBackend):
    sim = settled(scheduler)
    created = [write.key for write in sim.api.history if write.verb == "create"]
    groups = {group["metadata"]["ownerReferences"][0]["name"]: group for group in sim.api.objects("PodGroup")}
    assert sorted(groups) == sorted(GANGS)
    for gang, group in groups.items():
        first_pod = min(
            created.index(("Pod", pod["metadata"]["name"]))
            for pod in sim.api.objects("Pod")
            if pod["metadata"]["labels"]["grove.io/podgang"] == gang
        )
        at = created.index(("PodGroup", group["metadata"]["name"]))
        assert created.index(("PodGang", gang)) < at < first_pod
        uid = sim.api.get("PodGang", gang)["metadata"]["uid"]
        assert group["metadata"]["ownerReferences"][0]["uid"] == uid
    assert sim.plan().intents == ()


def test_pods_and_gangs_name_scheduler_pods_have_additions():
    sim = settled(Kai())
    for pod in sim.api.objects("Pod"):
        meta = pod["metadata"]
        assert pod["spec"]["schedulerName"] == "kai-scheduler"
        assert meta["labels"]["kai.scheduler/subgroup-name"] == meta["labels"]["grove.io/podclique"]
        assert meta["annotations"]["pod-group-name"] == meta["labels"]["grove.io/podgang"]
    for gang in sim.api.objects("PodGang"):
        assert gang["metadata"]["labels"]["grove.io/scheduler-name"] == "kai-scheduler"


def test_gangs_have_annotations_of_their_scheduler_only():
    sim = settled(Kai())
    note = {"kai.scheduler/skip-podgrouper": "true"}
    for gang in sim.api.objects("PodGang"):
        assert gang["metadata"]["annotations"].items() >= note.items()
        lost = {"metadata": {"annotations": dict.fromkeys(note)}}
        sim.api.patch("PodGang", gang["metadata"]["name"], lost, by="user")
    sim.settle()
    for gang in sim.api.objects("PodGang"):
        assert gang["metadata"]["annotations"].items() >= note.items()
    sim.scheduler = Volcano()
    sim.settle()
    for gang in sim.api.objects("PodGang"):
        assert not gang["metadata"]["annotations"].keys() & note.keys()


NO_ROOM = {"type": "PodGroupScheduled", "status": "False", "message": "0/4 nodes are available"}
FULL = {
    "type": "UnschedulableOnNodePool",
    "status": "True",
    "reasons": [{"reason": "PodSchedulingErrors", "message": "no nodes with enough resources. \n4 GPUs"}],
}
REFUSED = {"type": "Unschedulable", "status": "True", "message": "3/3 tasks in gang unschedulable"}


def placed(sim: Simulator) -> str:
    facts = sim.api.get("PodGang", "wl-0")["status"]["conditions"]
    (message,) = [each["message"] for each in facts if each["type"] == "Scheduled"]
    return message


def say(sim: Simulator, **status: Any) -> None:
    for group in sim.api.objects("PodGroup"):
        sim.api.patch("PodGroup", group["metadata"]["name"], {"status": status}, by="scheduler")


@pytest.mark.parametrize(
    ("scheduler", "status", "words"),
    [
        (
            Kube(V1Alpha2()),
            {"conditions": [NO_ROOM]},
            "default-scheduler says: 0/4 nodes are available",
        ),
        (
            Kai(),
            {"schedulingConditions": [FULL]},
            "kai-scheduler says: no nodes with enough resources. 4 GPUs",
        ),
        (
            Volcano(),
            {"phase": "Inqueue", "conditions": [REFUSED]},
            "volcano says: 3/3 tasks in gang unschedulable",
        ),
        (Volcano(), {"phase": "Pending"}, "volcano says: not admitted to queue team-a yet"),
    ],
    ids=["kube", "kai", "volcano", "volcano's queue"],
)
def test_waiting_gang_reports_message_of_scheduler(
    scheduler: SchedulerBackend, status: dict[str, Any], words: str
):
    sim = settled(scheduler)
    waits = "Too few pods scheduled in wl-0-a, wl-0-x-0-b"
    assert placed(sim) == waits
    say(sim, **status)
    sim.settle()
    assert placed(sim) == f"{waits}; {words}"
    schedule(sim, *sim.api.all("Pod"))
    sim.settle()
    assert placed(sim) == "Every clique has the pods that it needs scheduled"


def test_long_scheduler_message_is_shortened():
    sim = settled(Volcano())
    said = {**REFUSED, "message": "<node>: no room.\n" * 1000}
    say(sim, conditions=[said])
    sim.settle()
    assert placed(sim).endswith("<node>: no room. ...")
    assert len(placed(sim)) < 600


def test_backend_failing_on_annotations_still_gets_gang():
    class Absent(Kai):
        @property
        def gang_annotations(self) -> dict[str, str]:  # type: ignore[override]
            raise RuntimeError("lost")

        def waiting_reason(self, found: SchedulerObject) -> str:
            raise RuntimeError("speechless")

    assert {gang["metadata"]["name"] for gang in settled(Absent()).api.objects("PodGang")} == {*GANGS}


def test_in_tree_gang_scheduling_pods_name_their_pod_group():
    sim = settled(Kube(V1Alpha2()))
    groups = {group["metadata"]["labels"]["grove.io/podgang"]: group for group in sim.api.objects("PodGroup")}
    for pod in sim.api.objects("Pod"):
        own = groups[pod["metadata"]["labels"]["grove.io/podgang"]]
        assert pod["spec"]["schedulingGroup"] == {"podGroupName": own["metadata"]["name"]}


def test_backend_without_objects_writes_none():
    for scheduler in (None, Kube()):
        assert settled(scheduler).api.all("PodGroup") == {}


def test_edited_object_is_repaired_and_scheduler_fields_kept():
    sim = settled(Kai())
    before = sim.api.get("PodGroup", "wl-0")["spec"]
    edit = {"minMember": 1, "subGroups": [], "queue": "moved", "schedulingBackoff": 2}
    sim.api.patch("PodGroup", "wl-0", {"spec": edit, "metadata": {"labels": {"mine": "1"}}})
    assert [intent.id for intent in sim.plan().intents] == ["patch PodGroup ns/wl-0"]
    sim.settle()
    after = sim.api.get("PodGroup", "wl-0")
    assert after["spec"] == {**before, "queue": "moved", "schedulingBackoff": 2}
    assert after["metadata"]["labels"]["mine"] == "1"


def test_deleted_object_is_recreated_and_pods_stay():
    sim = settled(Kai())
    run_all(sim)
    sim.settle()
    pods = sim.api.all("Pod")
    sim.api.delete("PodGroup", "wl-0")
    sim.settle()
    assert "wl-0" in sim.api.all("PodGroup")
    assert sim.api.all("Pod") == pods


def test_removed_levels_leave_object_and_return():
    sim = settled(Kai(), "zone x:rack", a_topology())
    whole = {name: sim.api.get("PodGroup", name)["spec"] for name in GANGS}
    assert whole["wl-0"]["topologyConstraint"] == {"topology": "racks", "requiredTopologyLevel": ZONE}
    assert whole["wl-0-x-0"]["topologyConstraint"]["requiredTopologyLevel"] == RACK
    pods = sim.api.all("Pod")
    sim.topology = missing()
    sim.settle()
    assert sim.api.get("PodGroup", "wl-0")["spec"]["topologyConstraint"] == {}
    assert "Level" not in str(sim.api.get("PodGroup", "wl-0"))
    sim.topology = a_topology()
    sim.settle()
    assert {name: sim.api.get("PodGroup", name)["spec"] for name in GANGS} == whole
    assert sim.api.all("Pod") == pods


def test_referenced_topology_is_named_by_its_reference():
    sim = settled(Kai(), "zone", a_topology(references={"kai-scheduler": "theirs"}))
    assert sim.api.get("PodGroup", "wl-0")["spec"]["topologyConstraint"]["topology"] == "theirs"
    assert sim.api.get("PodGang", "wl-0")["metadata"]["annotations"]["grove.io/topology-name"] == "racks"


def test_gang_without_scheduler_object_gets_no_pods():
    sim = settled(Kai(), queue="")
    assert (sim.api.all("Pod"), sim.api.all("PodGroup")) == ({}, {})
    user_errors = sim.plan().errors
    cliques = [("PodClique", name) for name in ("wl-0-a", "wl-0-x-0-b", "wl-0-x-1-b")]
    assert [(each.regarding.kind, each.regarding.name) for each in user_errors] == cliques
    assert all("needs a queue" in user_error.message for user_error in user_errors)
    labels = {"metadata": {"labels": {"kai.scheduler/queue": "team-a"}}}
    sim.api.patch("PodCliqueSet", "wl", labels)
    sim.settle()
    assert len(sim.api.all("Pod")) == 4
    assert sim.plan().errors == ()


def test_unsupported_gang_emits_event_on_it():
    events = settled(Kai(), queue="").plan().events
    assert {(each.regarding.name, each.reason) for each in events} == {
        (gang, "KAIBackendMappingFailed") for gang in GANGS
    }
    assert {(each.regarding.kind, each.reporter, each.warning, each.intent) for each in events} == {
        ("PodGang", "scheduler-backend", True, "")
    }
    sim = a_simulator(Volcano())
    sim.kind_problem = "install Volcano 1.14 or later"
    sim.settle()
    assert (sim.api.all("Pod"), sim.api.all("PodGroup")) == ({}, {})
    assert {(each.reason, each.note) for each in sim.plan().events} == {
        ("VolcanoCapabilityUnavailable", "install Volcano 1.14 or later")
    }
    sim.kind_problem = ""
    sim.settle()
    assert len(sim.api.all("Pod")) == 4


@pytest.mark.parametrize("question", ["gang_object_name", "gang_object", "pod_additions"])
def test_failing_backend_blocks_its_gangs_and_reports(question: str):
    def fail(*_: object) -> None:
        raise KeyError("x")

    sim = a_simulator(type("Failing", (Kai,), {question: fail})())
    sim.settle()
    assert sim.api.all("Pod") == {}
    message = "scheduler backend kai-scheduler failed: KeyError: 'x'"
    assert {each.message for each in sim.plan().errors} == {message}
    assert {(each.reason, each.note) for each in sim.plan().events} == {("SchedulerSyncFailed", message)}


def test_event_of_missing_gang_waits_until_gang_exists():
    sim = a_simulator(Kai(), queue="")
    assert (len(sim.plan().errors), sim.plan().events) == (3, ())
    sim.settle()
    assert [each.regarding.uid for each in sim.plan().events] == [
        sim.api.get("PodGang", gang)["metadata"]["uid"] for gang in GANGS
    ]


@pytest.mark.parametrize(
    ("code", "message", "silent"),
    [("ERR_SYNC_PODGROUP", "", True), ("ERR_SYNC_PODGROUP", "other", False), ("ERR_CREATE_POD", "", False)],
)
def test_error_in_status_of_clique_emits_no_event(code: str, message: str, silent: bool):
    """A former leader emitted it."""
    sim = settled(Kai(), queue="")
    (words,) = {each.message for each in sim.plan().errors}
    description = f"[Operation: Sync, Code: {code}] message: {message or words}"
    errors = [{"code": code, "description": description, "observedAt": "2026-01-01T00:00:00Z"}]
    sim.api.patch("PodClique", "wl-0-a", {"status": {"lastErrors": errors}}, status=True)
    assert (len(sim.plan().errors), len(sim.plan().events)) == (3, 1 if silent else 2)


def test_unlistable_scheduler_objects_block_creation():
    sim = settled(Kai())
    fresh = a_simulator(Kai())
    for blind in (sim, fresh):
        plan = plan_replica(replace(blind.snapshot(), scheduler_objects=None), blind.now)
        assert not any("PodGroup" in intent.id or "Pod ns" in intent.id for intent in plan.intents)
        assert all("podgroups.scheduling.run.ai" in user_error.message for user_error in plan.errors)
        assert plan.errors


def test_foreign_object_is_not_written_and_blocks_pods():
    sim = a_simulator(Kai())
    body = {
        "apiVersion": "v1",
        "kind": "PodGroup",
        "metadata": {"name": "wl-0", "namespace": "ns"},
        "spec": {},
    }
    sim.api.create(body)
    for _ in range(4):
        sim.step()
    assert sim.api.get("PodGroup", "wl-0")["spec"] == {}
    gangs = {pod["metadata"]["labels"]["grove.io/podgang"] for pod in sim.api.objects("Pod")}
    assert gangs == {"wl-0-x-0"}


def gated(sim: Simulator) -> set[tuple[str, str]]:
    """Gated pods, by clique and index."""
    return {
        (
            pod["metadata"]["labels"]["grove.io/podclique"],
            pod["metadata"]["labels"]["grove.io/podclique-pod-index"],
        )
        for pod in sim.api.objects("Pod")
        if pod["spec"].get("schedulingGates")
    }


def test_minimum_of_every_clique_is_ungated_first():
    sim = Simulator(a_body("a:3/1 b:2"))
    sim.scheduler = Kube(V1Alpha2())
    sim.settle()
    assert gated(sim) == {("wl-0-a", "1"), ("wl-0-a", "2")}
    schedule(sim, *sim.pods("wl-0-a"))
    sim.settle()
    assert len(gated(sim)) == 2, "the other clique does not have its minimum"
    schedule(sim, *sim.pods("wl-0-b"))
    sim.settle()
    assert gated(sim) == set()
    run_all(sim)
    sim.scale("PodClique", "wl-0-a", 4)
    sim.settle()
    assert gated(sim) == set(), "above the minimum of a scheduled gang no pod is gated"


def test_surplus_is_created_later_if_gates_hold_group():
    sim = Simulator(a_body("a:3/1 b:2"))
    sim.scheduler = IN_TREE_BETA
    sim.settle()
    assert (len(sim.pods("wl-0-a")), len(sim.pods("wl-0-b")), gated(sim)) == (1, 2, set())
    schedule(sim, *sim.pods("wl-0-a"))
    sim.settle()
    assert len(sim.pods("wl-0-a")) == 1, "the other clique does not have its minimum"
    schedule(sim, *sim.pods("wl-0-b"))
    sim.settle()
    assert (len(sim.pods("wl-0-a")), gated(sim)) == (3, set())


def test_gated_surplus_is_released_after_upgrade():
    """Kubernetes was upgraded while a gang was waiting: its gated pods would hold it for ever."""
    sim = Simulator(a_body("a:3/1 b:2"))
    sim.scheduler = IN_TREE
    sim.settle()
    assert len(gated(sim)) == 2
    sim.scheduler = IN_TREE_BETA
    sim.settle()
    assert (len(sim.pods()), gated(sim)) == (5, set())


IN_TREE, IN_TREE_BETA, PLAIN = Kube(V1Alpha2()), Kube(V1Beta1()), Kube()


def a_running_gang(scheduler: SchedulerBackend | None, wishes: str = "") -> Simulator:
    sim = Simulator(a_body("a:2 b:2", "", wishes))
    sim.scheduler, sim.topology = scheduler, a_topology()
    sim.settle()
    run_all(sim)
    sim.settle()
    return sim


def replaced(sim: Simulator, *names: str) -> list[dict[str, Any]]:
    """The specs of the replacements."""
    before = set(sim.pods())
    for name in names:
        force_delete(sim, name)
    sim.settle()
    return [sim.api.get("Pod", name)["spec"] for name in set(sim.pods()) - before]


def group_of(spec: dict[str, Any]) -> str:
    return (spec.get("schedulingGroup") or {}).get("podGroupName", "")


def test_replacement_in_pod_group_joins_it():
    sim = a_running_gang(IN_TREE)
    (group,) = {group_of(pod["spec"]) for pod in sim.api.objects("Pod")}
    (spec,) = replaced(sim, next(iter(sim.pods())))
    assert group_of(spec) == group != ""


def test_replacement_beside_ungrouped_pods_is_ungrouped():
    """Gang scheduling was enabled while the gang was running."""
    sim = a_running_gang(PLAIN)
    sim.scheduler = IN_TREE
    sim.settle()
    (spec,) = replaced(sim, next(iter(sim.pods())))
    assert group_of(spec) == ""


def test_gang_replaced_as_a_whole_uses_pod_group():
    sim = a_running_gang(PLAIN)
    sim.scheduler = IN_TREE
    sim.settle()
    groups = {group_of(spec) for spec in replaced(sim, *sim.pods())}
    assert len(groups) == 1
    assert "" not in groups


def test_replacement_after_topology_change_uses_new_level():
    sim = a_running_gang(IN_TREE, "rack")
    sim.topology = a_topology("zone rack=example.com/other-rack host")
    sim.settle()
    (spec,) = replaced(sim, next(iter(sim.pods())))
    assert group_of(spec) == ""
    (term,) = spec["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term == {
        "topologyKey": "example.com/other-rack",
        "labelSelector": {"matchLabels": {"grove.io/podgang": "wl-0"}},
    }


def test_replacement_before_scheduling_joins_pod_group():
    sim = Simulator(a_body("a:2 b:2", "", "rack"))
    sim.scheduler, sim.topology = IN_TREE, a_topology()
    sim.settle()
    sim.topology = missing("grove-topology")
    sim.settle()
    (spec,) = replaced(sim, next(iter(sim.pods())))
    assert group_of(spec) != ""


def minima(sim: Simulator) -> dict[str, int]:
    groups = sim.api.objects("PodGroup")
    return {each["metadata"]["name"]: each["spec"]["schedulingPolicy"]["gang"]["minCount"] for each in groups}


@pytest.mark.parametrize(("scheduler", "groups"), [(IN_TREE, [2, 4]), (IN_TREE_BETA, [2])])
def test_changed_minimum_patches_group_where_possible(scheduler: SchedulerBackend, groups: list[int]):
    sim = a_running_gang(scheduler)
    before = set(minima(sim))
    sim.scale("PodClique", "wl-0-b", 0)
    sim.settle()
    assert sorted(minima(sim).values()) == groups
    assert before <= set(minima(sim))
    sim.scale("PodClique", "wl-0-b", 2)
    sim.settle()
    if scheduler is IN_TREE_BETA:
        assert set(minima(sim)) == before
        assert {group_of(pod["spec"]) for pod in sim.api.objects("Pod")} == before


def test_upgrade_of_kubernetes_keeps_names_of_groups():
    sim = a_running_gang(IN_TREE, "rack")
    pods, groups = dict(sim.pods()), minima(sim)
    for name in groups:
        sim.api.delete("PodGroup", name)
    sim.scheduler = IN_TREE_BETA
    sim.settle()
    assert (dict(sim.pods()), minima(sim)) == (pods, groups)
    (spec,) = replaced(sim, next(iter(pods)))
    assert {group_of(spec)} == set(groups)


def test_clique_aware_scheduler_gates_no_pod():
    for scheduler in (Kai(), Volcano(), Kube()):
        sim = Simulator(a_body("a:3/1 b:2"))
        sim.scheduler = scheduler
        sim.settle()
        assert gated(sim) == set()


@settings(deadline=None, max_examples=40)
@given(st.lists(st.integers(0, 12), max_size=3), st.integers())
def test_crash_at_any_write_creates_no_pod_before_object(cuts, seed):
    sim, pick = a_simulator(Kai(), "zone x:rack", a_topology()), Random(seed)
    for writes in cuts:
        run = Run(sim, sim.plan(), pick)
        for _ in range(writes):
            run.go_on()
        reported = sim.api.all("PodGroup").keys()
        assert {pod.metadata.labels["grove.io/podgang"] for pod in sim.pods().values()} <= reported
    sim.settle()
    assert sim.api.all("PodGroup").keys() == set(GANGS)
    assert len(sim.pods()) == 4


def drop_constraints(sim: Simulator) -> None:
    """What an API server does whose feature gate TopologyAwareWorkloadScheduling is off."""
    for group in sim.api.objects("PodGroup"):
        spec = {"schedulingConstraints": None}
        sim.api.patch("PodGroup", group["metadata"]["name"], {"spec": spec}, by="api server")


def test_unconstrained_gang_gets_group_and_pods_at_once():
    sim = a_simulator(IN_TREE)
    sim.step()
    assert (len(sim.api.all("PodGroup")), len(sim.pods())) == (2, 4)


@pytest.mark.parametrize("scheduler", [IN_TREE, IN_TREE_BETA], ids=["1.36", "1.37"])
def test_pods_wait_until_stored_group_is_compared(scheduler: SchedulerBackend):
    sim = a_simulator(scheduler, "rack", a_topology())
    assert sim.plan().partial
    sim.step()
    assert (len(sim.api.all("PodGroup")), len(sim.pods())) == (2, 0)
    sim.settle()
    assert len(sim.pods()) == 4
    assert not sim.plan().partial


@pytest.mark.parametrize("scheduler", [IN_TREE, IN_TREE_BETA], ids=["1.36", "1.37"])
def test_gang_without_stored_constraint_is_held(scheduler: SchedulerBackend):
    sim = a_simulator(scheduler, "rack", a_topology())
    sim.step()
    drop_constraints(sim)
    sim.settle()
    assert sim.pods() == {}
    plan = sim.plan()
    assert {each.reason for each in plan.events} == {"TopologyConstraintsNotEnforced"}
    assert all("TopologyAwareWorkloadScheduling=true" in each.message for each in plan.errors)
    assert len(plan.errors) == 3
    assert plan.requeue_at == sim.now + timing.DROPPED_CONSTRAINTS_RETRY


def test_held_gang_starts_after_gate_is_on():
    sim = a_simulator(IN_TREE_BETA, "rack", a_topology())
    sim.step()
    drop_constraints(sim)
    sim.settle()
    before = {group["metadata"]["uid"] for group in sim.api.objects("PodGroup")}
    sim.now += timing.DROPPED_CONSTRAINTS_RETRY
    sim.settle()
    assert len(sim.pods()) == 4
    assert before.isdisjoint(group["metadata"]["uid"] for group in sim.api.objects("PodGroup"))


def test_gated_pods_stay_gated_without_stored_constraint():
    """An earlier version of the operator created them, before it compared the group."""
    sim = a_simulator(IN_TREE, "rack", a_topology())
    sim.settle()
    assert {clique for clique, _ in gated(sim)} == {"wl-0-x-1-b"}
    drop_constraints(sim)
    schedule(sim, *sim.pods("wl-0-a"), *sim.pods("wl-0-x-0-b"))
    sim.settle()
    assert {clique for clique, _ in gated(sim)} == {"wl-0-x-1-b"}


@pytest.mark.parametrize("scheduler", [IN_TREE, IN_TREE_BETA], ids=["1.36", "1.37"])
def test_running_gang_without_constraint_is_completed_nearby(scheduler: SchedulerBackend):
    sim = a_running_gang(scheduler, "rack")
    drop_constraints(sim)
    (spec,) = replaced(sim, next(iter(sim.pods())))
    assert group_of(spec) == ""
    (term,) = spec["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term["topologyKey"] == RACK


@pytest.mark.parametrize("scheduler", [IN_TREE, IN_TREE_BETA], ids=["1.36", "1.37"])
def test_group_that_no_pod_names_is_deleted(scheduler: SchedulerBackend):
    sim = a_running_gang(scheduler, "rack")
    (old,) = sim.api.all("PodGroup")
    sim.topology = a_topology("zone rack=example.com/other-rack host")
    sim.settle()
    assert old in sim.api.all("PodGroup"), "its pods name it"
    names = list(sim.pods())
    for name in names[:-1]:
        force_delete(sim, name)
    sim.settle()
    assert old in sim.api.all("PodGroup"), "one pod names it"
    force_delete(sim, names[-1])
    sim.settle()
    assert old not in sim.api.all("PodGroup")
    assert len(sim.api.all("PodGroup")) == 1


def test_group_of_other_owner_is_not_deleted():
    sim = a_running_gang(IN_TREE_BETA, "rack")
    (own,) = sim.api.objects("PodGroup")
    metadata = {**own["metadata"], "name": "theirs", "ownerReferences": []}
    for field in ("uid", "resourceVersion"):
        metadata.pop(field)
    sim.api.create({**own, "metadata": metadata}, by="user")
    sim.settle()
    assert "theirs" in sim.api.all("PodGroup")
