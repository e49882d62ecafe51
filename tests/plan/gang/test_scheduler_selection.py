"""A replica keeps the scheduler that it was created for when the default changes."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grove.plan.members import pod_state
from grove.schedulers.backend import SchedulerBackend
from grove.schedulers.kai import Kai
from grove.schedulers.kube import Kube
from grove.schedulers.registry import SchedulerBackends
from grove.schedulers.volcano import Volcano
from tests.plan.simulator import actors
from tests.plan.simulator.invariants import alive
from tests.plan.simulator.simulator import Run, Simulator
from tests.plan.simulator.updates import change, converge, run_operator, status
from tests.schedulers.builders import a_body

KAI, VOLCANO, KUBE = "kai-scheduler", "volcano", "default-scheduler"


def in_use(default: str, *others: SchedulerBackend) -> SchedulerBackends:
    listed = {each.name: each for each in (others or (Kube(), Kai(), Volcano()))}
    return SchedulerBackends(listed, default)


def a_simulator(default: str = KUBE, replicas: int = 1) -> Simulator:
    body = a_body("a:2/2 b:1", "x:2/1=b", queue="team-a")
    body["spec"]["replicas"] = replicas
    body["spec"]["template"]["terminationDelay"] = "10s"
    sim = Simulator(body)
    sim.backends = in_use(default)
    converge(sim)
    return sim


def schedulers(sim: Simulator) -> dict[str, set[str]]:
    """By replica, the schedulers of its pods and gangs."""
    found: dict[str, set[str]] = {}
    for pod in alive(sim):
        found.setdefault(pod.metadata.labels["grove.io/podgang"].split("-")[1], set()).add(
            pod.spec.scheduler_name
        )
    for gang in sim.api.objects("PodGang"):
        replica = gang["metadata"]["labels"]["grove.io/podcliqueset-replica-index"]
        found.setdefault(replica, set()).add(gang["metadata"]["labels"]["grove.io/scheduler-name"])
    return found


def lose(sim: Simulator, *names: str) -> None:
    for name in names or tuple(sim.pods()):
        actors.force_delete(sim, name)


def test_changed_default_scheduler_changes_no_replica():
    sim = a_simulator()
    for default in (KAI, VOLCANO):
        sim.backends = in_use(default)
        assert sim.plan().intents == ()


@pytest.mark.parametrize("event", ["lost", "scaled", "rolled", "restarted", "all lost", "gang lost"])
def test_new_pods_use_scheduler_of_existing_pods(event: str):
    sim = a_simulator()
    sim.backends = in_use(KAI)
    before = set(sim.pods())
    if event == "lost":
        lose(sim, next(iter(sim.pods("wl-0-a"))))
    elif event == "scaled":
        sim.scale("PodClique", "wl-0-a", 3)
        sim.scale("PodCliqueScalingGroup", "wl-0-x", 4)
    elif event == "rolled":
        change(sim)
    elif event == "restarted":
        lose(sim, next(iter(sim.pods("wl-0-a"))))
        run_operator(sim)
        actors.refuse(sim)
        sim.now += 10.0
        run_operator(sim)
        assert not before & {pod.metadata.name for pod in alive(sim)}
    elif event == "all lost":
        lose(sim)
    else:
        sim.api.delete("PodGang", "wl-0")
    converge(sim)
    assert event == "gang lost" or set(sim.pods()) != before
    assert schedulers(sim) == {"0": {KUBE}}
    assert sim.api.all("PodGroup") == {}


def test_new_replicas_use_current_default_scheduler():
    sim = a_simulator()
    sim.backends = in_use(KAI)
    sim.api.patch("PodCliqueSet", "wl", {"spec": {"replicas": 2}})
    converge(sim)
    assert schedulers(sim) == {"0": {KUBE}, "1": {KAI}}
    assert {group["metadata"]["name"] for group in sim.api.objects("PodGroup")} == {"wl-1", "wl-1-x-0"}


def test_pods_take_precedence_over_gang_label():
    sim = a_simulator(KAI)
    sim.backends = in_use(VOLCANO)
    for said in (KUBE, VOLCANO, "nobody"):
        patch = {"metadata": {"labels": {"grove.io/scheduler-name": said}}}
        sim.api.patch("PodGang", "wl-0", patch, by="user")
        converge(sim)
        assert schedulers(sim) == {"0": {KAI}}


def test_unlisted_scheduler_keeps_pods_gets_no_new_replica():
    sim = a_simulator(KAI)
    sim.backends = in_use(KUBE, Kube())
    lose(sim, next(iter(sim.pods("wl-0-a"))))
    converge(sim)
    assert schedulers(sim) == {"0": {KAI}}
    lose(sim)
    converge(sim)
    assert schedulers(sim) == {"0": {KUBE}}, "no pod is left that keeps the former scheduler"


UNLISTED = "scheduler kai-scheduler is not in the operator's configuration, no objects are written for it: "
AGAIN = "list it in scheduler.profiles again, or "
MOVE = "recreate the replica, which then gets the default scheduler"
RENAME = "recreate the set with one that is listed"


def errors(sim: Simulator) -> list[str]:
    """The messages of the set's lastErrors."""
    reported = status(sim).get("lastErrors", ())
    assert {error["code"] for error in reported} <= {"ERR_SYNC_PODGROUP"}
    return [error["description"].partition("message: ")[2] for error in reported]


def test_unlisted_scheduler_is_reported_until_listed_again():
    sim = a_simulator(KAI, replicas=5)
    assert not sim.plan().errors
    sim.backends = in_use(KUBE, Kube())
    converge(sim)
    assert {(each.regarding.name, each.code) for each in sim.plan(1).errors} == {
        ("wl-1-a", "ERR_SYNC_PODGROUP"),
        ("wl-1-x-0-b", "ERR_SYNC_PODGROUP"),
        ("wl-1-x-1-b", "ERR_SYNC_PODGROUP"),
    }
    assert [(each.regarding.name, each.reason) for each in sim.plan(1).events] == [
        ("wl-1", "SchedulerSyncFailed"),
        ("wl-1-x-0", "SchedulerSyncFailed"),
    ]
    assert {each.message for each in sim.plan(1).errors} == {UNLISTED + AGAIN + MOVE}
    assert errors(sim) == [f"replicas 0, 1, 2 and 2 more: {UNLISTED}{AGAIN}{MOVE}"]
    assert "no objects are written" not in str(status(sim, "PodGang", "wl-1")), "it does not wait"
    sim.backends = in_use(KUBE)
    converge(sim)
    assert sim.plan(1).errors == ()
    assert errors(sim) == []


def test_recreated_replicas_are_no_longer_reported():
    sim = a_simulator(KAI, replicas=2)
    sim.backends = in_use(KUBE, Kube())
    lose(sim, *(name for name in sim.pods() if name.startswith("wl-1-")))
    converge(sim)
    assert schedulers(sim) == {"0": {KAI}, "1": {KUBE}}
    assert sim.plan(1).errors == ()
    assert errors(sim) == [f"replica 0: {UNLISTED}{AGAIN}{MOVE}"]


def test_waiting_gang_reports_unlisted_scheduler():
    sim = a_simulator(KAI)
    sim.backends = in_use(KUBE, Kube())
    lose(sim, *sim.pods("wl-0-a"))
    run_operator(sim)
    (said,) = (
        each["message"]
        for each in status(sim, "PodGang", "wl-0")["conditions"]
        if each["type"] == "Scheduled"
    )
    assert said == f"Too few pods scheduled in wl-0-a; {UNLISTED}{AGAIN}{MOVE}"
    assert len(sim.pods("wl-0-a")) == 2, "nothing is delayed"


def test_unlisted_scheduler_does_not_delay_the_set():
    sim = a_simulator(KAI)
    sim.backends = in_use(KUBE, Kube())
    change(sim)
    converge(sim)
    (status_update,) = sim.plan_set().status_updates
    assert status_update.desired.last_errors
    generation = sim.api.get("PodCliqueSet", "wl")["metadata"]["generation"]
    assert status_update.desired.observed_generation == generation


def test_set_naming_unlisted_scheduler_gets_advice():
    body = a_body("a", queue="team-a")
    body["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["schedulerName"] = KAI
    sim = Simulator(body)
    sim.backends = in_use(KUBE, Kube())
    converge(sim)
    assert {each.message for each in sim.plan().errors} == {UNLISTED + AGAIN + RENAME}
    assert errors(sim) == [f"replica 0: {UNLISTED}{AGAIN}{RENAME}"]


def test_set_naming_scheduler_ignores_default():
    sim = a_simulator()
    body = a_body("a", queue="team-a")
    body["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["schedulerName"] = VOLCANO
    named = Simulator(body)
    named.backends = sim.backends
    converge(named)
    assert schedulers(named) == {"0": {VOLCANO}}


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.tuples(st.integers(0, 14), st.sampled_from([KUBE, KAI, VOLCANO])), max_size=5), st.integers()
)
def test_crash_between_configurations_never_splits_replica(reigns, seed):
    body = a_body("a:2 b:2", "x:2/1=b", queue="team-a")
    sim, pick = Simulator(body), Random(seed)
    sim.backends = in_use(KUBE)
    for writes, default in reigns:
        sim.backends = in_use(default)
        run = Run(sim, sim.plan(), pick)
        for _ in range(writes):
            run.go_on()
        assert len({pod.spec.scheduler_name for pod in sim.pods().values() if pod_state.alive(pod)}) <= 1
    sim.settle()
    (only,) = schedulers(sim).values()
    assert len(only) == 1
