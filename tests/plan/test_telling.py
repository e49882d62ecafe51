"""The scheduler is told of a gang before there are pods, and what it was told is kept as it should be."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from grove.plan.replica import plan_replica
from grove.schedulers.backend import Backend, Foreign
from grove.schedulers.kai import Kai
from grove.schedulers.kube import Kube
from grove.schedulers.volcano import Volcano
from grove.topology.constraints import Topology
from tests.plan.hands import run_all, schedule
from tests.plan.world import Run, World
from tests.schedulers.builders import RACK, ZONE, a_body
from tests.topology.builders import a_topology, missing

GANGS = ("wl-0", "wl-0-x-0")


def a_world(
    scheduler: Backend | None, wishes: str = "", topology: Topology | None = None, **options: Any
) -> World:
    world = World(a_body("a:2 b", "x:2/1=b", wishes, **options))
    world.scheduler, world.topology = scheduler, topology
    return world


def settled(*args: Any, **options: Any) -> World:
    world = a_world(*args, **options)
    world.settle()
    return world


@pytest.mark.parametrize("scheduler", [Kai(), Volcano(), Kube(gang_scheduling=True)])
def test_gang_then_the_schedulers_object_then_pods(scheduler: Backend):
    world = settled(scheduler)
    made = [deed.key for deed in world.api.history if deed.verb == "create"]
    groups = {
        group["metadata"]["ownerReferences"][0]["name"]: group for group in world.api.objects("PodGroup")
    }
    assert sorted(groups) == sorted(GANGS)
    for gang, group in groups.items():
        first_pod = min(
            made.index(("Pod", pod["metadata"]["name"]))
            for pod in world.api.objects("Pod")
            if pod["metadata"]["labels"]["grove.io/podgang"] == gang
        )
        at = made.index(("PodGroup", group["metadata"]["name"]))
        assert made.index(("PodGang", gang)) < at < first_pod
        uid = world.api.get("PodGang", gang)["metadata"]["uid"]
        assert group["metadata"]["ownerReferences"][0]["uid"] == uid
    assert world.plan().intents == ()


def test_pods_and_gangs_name_the_scheduler_and_pods_carry_what_it_reads():
    world = settled(Kai())
    for pod in world.api.objects("Pod"):
        meta = pod["metadata"]
        assert pod["spec"]["schedulerName"] == "kai-scheduler"
        assert meta["labels"]["kai.scheduler/subgroup-name"] == meta["labels"]["grove.io/podclique"]
        assert meta["annotations"]["pod-group-name"] == meta["labels"]["grove.io/podgang"]
    for gang in world.api.objects("PodGang"):
        assert gang["metadata"]["labels"]["grove.io/scheduler-name"] == "kai-scheduler"


def test_gangs_carry_what_their_scheduler_reads_there_and_others_do_not():
    world = settled(Kai())
    note = {"kai.scheduler/skip-podgrouper": "true"}
    for gang in world.api.objects("PodGang"):
        assert gang["metadata"]["annotations"].items() >= note.items()
        lost = {"metadata": {"annotations": dict.fromkeys(note)}}
        world.api.patch("PodGang", gang["metadata"]["name"], lost, by="somebody")
    world.settle()
    for gang in world.api.objects("PodGang"):
        assert gang["metadata"]["annotations"].items() >= note.items()
    world.scheduler = Volcano()
    world.settle()
    for gang in world.api.objects("PodGang"):
        assert not gang["metadata"]["annotations"].keys() & note.keys()


NO_ROOM = {"type": "PodGroupScheduled", "status": "False", "message": "0/4 nodes are available"}
FULL = {
    "type": "UnschedulableOnNodePool",
    "status": "True",
    "reasons": [{"reason": "PodSchedulingErrors", "message": "no nodes with enough resources. \n4 GPUs"}],
}
REFUSED = {"type": "Unschedulable", "status": "True", "message": "3/3 tasks in gang unschedulable"}


def placed(world: World) -> str:
    facts = world.api.get("PodGang", "wl-0")["status"]["conditions"]
    (message,) = [each["message"] for each in facts if each["type"] == "Scheduled"]
    return message


def say(world: World, **status: Any) -> None:
    for group in world.api.objects("PodGroup"):
        world.api.patch("PodGroup", group["metadata"]["name"], {"status": status}, by="scheduler")


@pytest.mark.parametrize(
    ("scheduler", "status", "words"),
    [
        (
            Kube(gang_scheduling=True),
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
def test_why_a_gang_waits_is_told_in_the_schedulers_words(
    scheduler: Backend, status: dict[str, Any], words: str
):
    world = settled(scheduler)
    waits = "Too few pods scheduled in wl-0-a, wl-0-x-0-b"
    assert placed(world) == waits
    say(world, **status)
    world.settle()
    assert placed(world) == f"{waits}; {words}"
    schedule(world, *world.api.all("Pod"))
    world.settle()
    assert placed(world) == "Every clique has the pods that it needs scheduled"


def test_what_a_scheduler_says_of_every_node_is_cut_short():
    world = settled(Volcano())
    said = {**REFUSED, "message": "<node>: no room.\n" * 1000}
    say(world, conditions=[said])
    world.settle()
    assert placed(world).endswith("<node>: no room. ...")
    assert len(placed(world)) < 600


def test_a_backend_that_does_not_know_its_notes_costs_a_gang_none():
    class Absent(Kai):
        @property
        def gang_notes(self) -> dict[str, str]:  # type: ignore[override]
            raise RuntimeError("lost")

        def why(self, found: Foreign) -> str:
            raise RuntimeError("speechless")

    assert {gang["metadata"]["name"] for gang in settled(Absent()).api.objects("PodGang")} == {*GANGS}


def test_kubernetes_own_scheduler_is_told_by_name_which_pods_belong_together():
    world = settled(Kube(gang_scheduling=True))
    groups = {
        group["metadata"]["labels"]["grove.io/podgang"]: group for group in world.api.objects("PodGroup")
    }
    for pod in world.api.objects("Pod"):
        own = groups[pod["metadata"]["labels"]["grove.io/podgang"]]
        assert pod["spec"]["schedulingGroup"] == {"podGroupName": own["metadata"]["name"]}


def test_a_scheduler_that_wants_nothing_is_told_nothing():
    for scheduler in (None, Kube()):
        assert settled(scheduler).api.all("PodGroup") == {}


def test_what_somebody_edited_is_mended_and_what_the_scheduler_writes_stays():
    world = settled(Kai())
    before = world.api.get("PodGroup", "wl-0")["spec"]
    edit = {"minMember": 1, "subGroups": [], "queue": "moved", "schedulingBackoff": 2}
    world.api.patch("PodGroup", "wl-0", {"spec": edit, "metadata": {"labels": {"mine": "1"}}})
    assert [intent.id for intent in world.plan().intents] == ["patch PodGroup ns/wl-0"]
    world.settle()
    after = world.api.get("PodGroup", "wl-0")
    assert after["spec"] == {**before, "queue": "moved", "schedulingBackoff": 2}
    assert after["metadata"]["labels"]["mine"] == "1"


def test_one_that_was_deleted_comes_back_and_pods_stay():
    world = settled(Kai())
    run_all(world)
    world.settle()
    pods = world.api.all("Pod")
    world.api.delete("PodGroup", "wl-0")
    world.settle()
    assert "wl-0" in world.api.all("PodGroup")
    assert world.api.all("Pod") == pods


def test_levels_that_go_are_taken_from_what_was_told_and_come_back():
    world = settled(Kai(), "zone x:rack", a_topology())
    whole = {name: world.api.get("PodGroup", name)["spec"] for name in GANGS}
    assert whole["wl-0"]["topologyConstraint"] == {"topology": "racks", "requiredTopologyLevel": ZONE}
    assert whole["wl-0-x-0"]["topologyConstraint"]["requiredTopologyLevel"] == RACK
    pods = world.api.all("Pod")
    world.topology = missing()
    world.settle()
    assert world.api.get("PodGroup", "wl-0")["spec"]["topologyConstraint"] == {}
    assert "Level" not in str(world.api.get("PodGroup", "wl-0"))
    world.topology = a_topology()
    world.settle()
    assert {name: world.api.get("PodGroup", name)["spec"] for name in GANGS} == whole
    assert world.api.all("Pod") == pods


def test_a_topology_that_others_manage_is_named_as_they_call_it():
    world = settled(Kai(), "zone", a_topology(references={"kai-scheduler": "theirs"}))
    assert world.api.get("PodGroup", "wl-0")["spec"]["topologyConstraint"]["topology"] == "theirs"
    assert world.api.get("PodGang", "wl-0")["metadata"]["annotations"]["grove.io/topology-name"] == "racks"


def test_a_gang_that_cannot_be_told_has_no_pods_until_it_can():
    world = settled(Kai(), queue="")
    assert (world.api.all("Pod"), world.api.all("PodGroup")) == ({}, {})
    complaints = world.plan().complaints
    assert {complaint.clique for complaint in complaints} == {"wl-0-a", "wl-0-x-0-b", "wl-0-x-1-b"}
    assert all("needs a queue" in complaint.words for complaint in complaints)
    labels = {"metadata": {"labels": {"kai.scheduler/queue": "team-a"}}}
    world.api.patch("PodCliqueSet", "wl", labels)
    world.settle()
    assert len(world.api.all("Pod")) == 4
    assert world.plan().complaints == ()


def test_why_a_gang_cannot_be_told_is_an_event_on_it():
    complaints = settled(Kai(), queue="").plan().complaints
    assert {(each.gang, each.reason) for each in complaints} == {
        (gang, "KAIBackendMappingFailed") for gang in GANGS
    }
    world = a_world(Volcano())
    world.lacking = "install Volcano 1.14 or later"
    world.settle()
    assert (world.api.all("Pod"), world.api.all("PodGroup")) == ({}, {})
    assert {(each.reason, each.words) for each in world.plan().complaints} == {
        ("VolcanoCapabilityUnavailable", "install Volcano 1.14 or later")
    }
    world.lacking = ""
    world.settle()
    assert len(world.api.all("Pod")) == 4


@pytest.mark.parametrize("question", ["told_name", "told", "marks"])
def test_a_backend_that_fails_holds_its_own_gangs_and_says_so(question: str):
    def fail(*_: object) -> None:
        raise KeyError("x")

    world = a_world(type("Failing", (Kai,), {question: fail})())
    world.settle()
    assert world.api.all("Pod") == {}
    (words,) = {(each.reason, each.words) for each in world.plan().complaints}
    assert words == ("SchedulerNotTold", "scheduler backend kai-scheduler failed: KeyError: 'x'")


def test_while_nobody_sees_what_was_told_nothing_is_made():
    world = settled(Kai())
    fresh = a_world(Kai())
    for blind in (world, fresh):
        plan = plan_replica(replace(blind.snapshot(), told=None), blind.now)
        assert not any("PodGroup" in intent.id or "Pod ns" in intent.id for intent in plan.intents)
        assert all("podgroups.scheduling.run.ai" in complaint.words for complaint in plan.complaints)
        assert plan.complaints


def test_one_of_somebody_else_is_not_touched_and_holds_the_pods():
    world = a_world(Kai())
    body = {
        "apiVersion": "v1",
        "kind": "PodGroup",
        "metadata": {"name": "wl-0", "namespace": "ns"},
        "spec": {},
    }
    world.api.create(body)
    for _ in range(4):
        world.step()
    assert world.api.get("PodGroup", "wl-0")["spec"] == {}
    gangs = {pod["metadata"]["labels"]["grove.io/podgang"] for pod in world.api.objects("Pod")}
    assert gangs == {"wl-0-x-0"}


def gated(world: World) -> set[tuple[str, str]]:
    """Pods that wait, by clique and index."""
    return {
        (
            pod["metadata"]["labels"]["grove.io/podclique"],
            pod["metadata"]["labels"]["grove.io/podclique-pod-index"],
        )
        for pod in world.api.objects("Pod")
        if pod["spec"].get("schedulingGates")
    }


def test_where_only_pods_are_counted_the_minimum_of_every_clique_goes_first():
    world = World(a_body("a:3/1 b:2"))
    world.scheduler = Kube(gang_scheduling=True)
    world.settle()
    assert gated(world) == {("wl-0-a", "1"), ("wl-0-a", "2")}
    schedule(world, *world.pods("wl-0-a"))
    world.settle()
    assert len(gated(world)) == 2, "the other clique has not got its minimum"
    schedule(world, *world.pods("wl-0-b"))
    world.settle()
    assert gated(world) == set()
    run_all(world)
    world.scale("PodClique", "wl-0-a", 4)
    world.settle()
    assert gated(world) == set(), "beyond a gang that is placed nobody waits"


def test_where_schedulers_know_cliques_nobody_is_held_back():
    for scheduler in (Kai(), Volcano(), Kube()):
        world = World(a_body("a:3/1 b:2"))
        world.scheduler = scheduler
        world.settle()
        assert gated(world) == set()


@settings(deadline=None, max_examples=40)
@given(st.lists(st.integers(0, 12), max_size=3), st.integers())
def test_wherever_it_is_cut_short_no_pod_is_ahead_of_its_scheduler_and_the_rest_follows(cuts, seed):
    world, pick = a_world(Kai(), "zone x:rack", a_topology()), Random(seed)
    for writes in cuts:
        run = Run(world, world.plan(), pick)
        for _ in range(writes):
            run.go_on()
        told = world.api.all("PodGroup").keys()
        assert {pod.metadata.labels["grove.io/podgang"] for pod in world.pods().values()} <= told
    world.settle()
    assert world.api.all("PodGroup").keys() == set(GANGS)
    assert len(world.pods()) == 4
