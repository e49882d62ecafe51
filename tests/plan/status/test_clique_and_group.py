"""Statuses of cliques, groups, gangs and replicas, from creation to ready and back."""

from __future__ import annotations

from grove.plan.timestamps import rfc3339
from tests.plan.builders import a_clique, a_set
from tests.plan.simulator import actors
from tests.plan.simulator.simulator import Simulator
from tests.plan.test_scaling import running

NO_UPDATE = {"UpdateInProgress": ("False", "NoActiveUpdate")}


def conditions(sim: Simulator, kind: str, name: str) -> dict[str, tuple[str, str]]:
    found = sim.api.get(kind, name)["status"]["conditions"]
    return {fact["type"]: (fact["status"], fact["reason"]) for fact in found}


def counts(sim: Simulator, kind: str, name: str) -> dict[str, int]:
    status = sim.api.get(kind, name)["status"]
    return {key: value for key, value in status.items() if key.endswith("eplicas") and value}


def messages(sim: Simulator, kind: str, name: str) -> set[str]:
    return {fact["message"] for fact in sim.api.get(kind, name)["status"]["conditions"]}


def test_clique_counts_pods_through_their_lifecycle():
    sim = Simulator(a_set("a:2/1 b:1", "x:2/1=b"))
    sim.settle()
    name = "wl-0-a"
    assert counts(sim, "PodClique", name) == {"replicas": 2, "updatedReplicas": 2}
    assert counts(sim, "PodClique", "wl-0-x-1-b")["scheduleGatedReplicas"] == 1
    assert conditions(sim, "PodClique", name) == {
        "PodCliqueScheduled": ("False", "InsufficientScheduledPods"),
        "MinAvailableBreached": ("True", "ScheduledReplicasBelowMinAvailable"),
        **NO_UPDATE,
    }
    actors.run(sim, next(iter(sim.pods(name))))
    sim.settle()
    assert counts(sim, "PodClique", name) == {
        "replicas": 2,
        "readyReplicas": 1,
        "scheduledReplicas": 1,
        "updatedReplicas": 2,
    }
    assert conditions(sim, "PodClique", name) == {
        "WasScheduled": ("True", "PodsHadNodes"),
        "PodCliqueScheduled": ("True", "SufficientScheduledPods"),
        "MinAvailableBreached": ("False", "SufficientReadyPods"),
        **NO_UPDATE,
    }


def test_pod_with_any_gate_counts_as_gated():
    body = a_set("a:1 b:1", "x:2/1=b")
    body["spec"]["template"]["cliques"][1] = a_clique("b:1", schedulingGates=[{"name": "example.com/mine"}])
    sim = Simulator(body)
    sim.settle()
    assert counts(sim, "PodClique", "wl-0-a").get("scheduleGatedReplicas") is None
    assert counts(sim, "PodClique", "wl-0-x-0-b")["scheduleGatedReplicas"] == 1, "with the user's gate only"
    assert counts(sim, "PodClique", "wl-0-x-1-b")["scheduleGatedReplicas"] == 1, "with ours and the user's"


def crash(sim: Simulator, name: str) -> None:
    """A container of the pod fails and is restarted."""
    died = {"name": "main", "ready": False, "lastState": {"terminated": {"exitCode": 1}}}
    facts = [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "False"}]
    status = {"phase": "Running", "conditions": facts, "containerStatuses": [died]}
    sim.api.patch("Pod", name, {"status": status}, status=True)


def test_clique_with_crashing_pods_is_breached_with_time():
    sim = running("a:1")
    (name,) = sim.pods()
    sim.now += 60
    crash(sim, name)
    sim.settle()
    assert conditions(sim, "PodClique", "wl-0-a")["MinAvailableBreached"] == (
        "True",
        "InsufficientReadyPods",
    )
    since = rfc3339(sim.now)
    sim.now += 60
    actors.run(sim, name)
    crash(sim, name)
    sim.settle()
    facts = sim.api.get("PodClique", "wl-0-a")["status"]["conditions"]
    assert [fact["lastTransitionTime"] for fact in facts if fact["type"] == "MinAvailableBreached"] == [since]


def test_pods_not_started_yet_do_not_breach():
    sim = Simulator(a_set("a:1"))
    sim.settle()
    actors.schedule(sim, *sim.pods())
    sim.settle()
    assert conditions(sim, "PodClique", "wl-0-a")["MinAvailableBreached"][0] == "False"
    assert not sim.plan().report.available


def test_terminating_or_ended_pods_are_not_counted():
    sim = running("a:3/1")
    first, second, _ = sim.pods()
    actors.delete(sim, first)
    actors.fail(sim, second)
    sim.publish(sim.plan())
    assert counts(sim, "PodClique", "wl-0-a") == {
        "replicas": 1,
        "readyReplicas": 1,
        "scheduledReplicas": 1,
        "updatedReplicas": 1,
    }


def test_gang_is_initialized_then_scheduled_then_ready():
    sim = Simulator(a_set("a:2/1 b:1"))
    gang = ("PodGang", "wl-0")
    plan = sim.plan()
    sim.execute(plan)
    sim.publish(sim.plan())
    assert sim.api.get(*gang)["status"]["phase"] == "Pending"
    assert {name: fact[0] for name, fact in conditions(sim, *gang).items()} == {
        "Initialized": "True",
        "Scheduled": "False",
        "Ready": "False",
    }
    for name in sim.pods():
        actors.schedule(sim, name)
    sim.settle()
    assert sim.api.get(*gang)["status"]["phase"] == "Starting"
    actors.run_all(sim)
    sim.settle()
    assert sim.api.get(*gang)["status"]["phase"] == "Running"
    assert {fact[0] for fact in conditions(sim, *gang).values()} == {"True"}
    actors.force_delete(sim, next(iter(sim.pods("wl-0-b"))))
    sim.settle()
    assert conditions(sim, *gang)["Initialized"][0] == "True"
    assert conditions(sim, *gang)["Scheduled"][0] == "False"


def test_condition_set_by_scheduler_on_gang_is_kept():
    sim = running("a:1")
    facts = sim.api.get("PodGang", "wl-0")["status"]["conditions"]
    theirs = {
        "type": "Unhealthy",
        "status": "False",
        "reason": "Fine",
        "message": "",
        "lastTransitionTime": "",
    }
    sim.api.patch("PodGang", "wl-0", {"status": {"conditions": [*facts, theirs]}}, status=True)
    actors.force_delete(sim, next(iter(sim.pods())))
    sim.settle()
    assert "Unhealthy" in conditions(sim, "PodGang", "wl-0")


def test_group_counts_whole_replicas():
    sim = Simulator(a_set("a:1 b:1 c:1", "x:2/1=b,c"))
    sim.settle()
    actors.run(sim, *sim.pods("wl-0-a"), *sim.pods("wl-0-x-0-b"))
    sim.settle()
    name = ("PodCliqueScalingGroup", "wl-0-x")
    assert counts(sim, *name) == {"replicas": 2}
    breach = "InsufficientAvailablePodCliqueScalingGroupReplicas"
    waits = {"Waiting": ("True", "BaseGangNotScheduled")}
    assert conditions(sim, *name) == {"MinAvailableBreached": ("True", breach), **NO_UPDATE, **waits}
    actors.run(sim, *sim.pods("wl-0-x-0-c"))
    sim.settle()
    one = {"scheduledReplicas": 1, "availableReplicas": 1, "updatedReplicas": 1}
    assert counts(sim, *name) == {"replicas": 2, **one}
    assert conditions(sim, *name)["MinAvailableBreached"][0] == "False"


def test_scaled_to_0_is_not_breached():
    sim = running("a:1 b:1", "x:1/1=b")
    sim.scale("PodClique", "wl-0-a", 0)
    sim.scale("PodCliqueScalingGroup", "wl-0-x", 0)
    sim.settle()
    assert conditions(sim, "PodClique", "wl-0-a")["MinAvailableBreached"][0] == "False"
    assert conditions(sim, "PodCliqueScalingGroup", "wl-0-x")["MinAvailableBreached"][0] == "False"
    assert counts(sim, "PodClique", "wl-0-a") == counts(sim, "PodCliqueScalingGroup", "wl-0-x") == {}
    assert messages(sim, "PodClique", "wl-0-a") >= {"0 of 0 pods are scheduled, 0 are needed"}
    assert messages(sim, "PodClique", "wl-0-a") >= {"0 of 0 pods are ready, 0 are needed"}
    assert messages(sim, "PodCliqueScalingGroup", "wl-0-x") >= {"0 of 0 replicas are healthy, 0 are needed"}


def test_autoscaler_selectors_are_on_scalable_objects_only():
    sim = running("a:1 b:1", "x:1/1=b")
    managed = "app.kubernetes.io/managed-by=grove-operator,app.kubernetes.io/part-of=wl"
    of = {name: sim.api.get("PodClique", name)["status"] for name in ("wl-0-a", "wl-0-x-0-b")}
    assert of["wl-0-a"]["hpaPodSelector"] == f"{managed},grove.io/podclique=wl-0-a"
    assert "hpaPodSelector" not in of["wl-0-x-0-b"]
    group = sim.api.get("PodCliqueScalingGroup", "wl-0-x")["status"]
    assert group["selector"] == f"{managed},grove.io/podcliquescalinggroup=wl-0-x"


def test_current_hashes_published_once_every_pod_is_updated():
    sim = running("a:2/1")
    status = sim.api.get("PodClique", "wl-0-a")["status"]
    old = status["currentPodTemplateHash"], status["currentPodCliqueSetGenerationHash"]
    spec = a_set("a:2/1")["spec"]
    spec["template"]["cliques"][0]["spec"]["podSpec"]["hostNetwork"] = True
    sim.api.patch("PodCliqueSet", "wl", {"spec": spec})
    sim.settle()
    first, second = sim.pods()
    actors.force_delete(sim, first)
    sim.settle()
    status = sim.api.get("PodClique", "wl-0-a")["status"]
    assert status["updatedReplicas"] == 1
    assert (status["currentPodTemplateHash"], status["currentPodCliqueSetGenerationHash"]) == old
    actors.force_delete(sim, second)
    sim.settle()
    status = sim.api.get("PodClique", "wl-0-a")["status"]
    labels = sim.api.get("PodClique", "wl-0-a")["metadata"]["labels"]
    assert status["currentPodTemplateHash"] == labels["grove.io/pod-template-hash"] != old[0]
    assert status["currentPodCliqueSetGenerationHash"] != old[1]


def test_replica_summary_follows_its_cliques_and_groups():
    sim = Simulator(a_set("a:1 b:1", "x:2/1=b"))
    sim.settle()
    before = sim.plan().report
    assert (before.available, before.updated, before.cliques, before.groups) == (False, False, 1, 1)
    assert (before.updated_cliques, before.updated_groups) == (0, 1), (
        "a clique that is not ready is not updated"
    )
    actors.run(sim, *sim.pods("wl-0-a"), *sim.pods("wl-0-x-0-b"))
    sim.settle()
    assert sim.plan().report.available
    assert sim.plan().report.updated


def lose_for_a_while(sim: Simulator, clique: str) -> None:
    """A pod of the clique fails, and so does its successor, which is replaced after a delay."""
    for _ in range(2):
        name = list(sim.pods(clique))[-1]
        actors.run(sim, name)
        actors.fail(sim, name)
        sim.settle()


def test_failed_pod_above_minimum_makes_nothing_outdated():
    sim = running("a:2/1 b:2/1", "x:1/1=b")
    for clique in ("wl-0-a", "wl-0-x-0-b"):
        lose_for_a_while(sim, clique)
        assert counts(sim, "PodClique", clique)["replicas"] == 1
    group = counts(sim, "PodCliqueScalingGroup", "wl-0-x")
    assert (group["availableReplicas"], group["updatedReplicas"]) == (1, 1)
    summary = sim.plan().report
    assert (summary.available, summary.updated) == (True, True)
    assert (summary.updated_cliques, summary.updated_groups) == (1, 1)
    assert not summary.update_complete, "an update does not proceed to another replica while one lacks pods"


def test_pods_not_created_yet_are_not_updated():
    sim = running("a:2/1")
    spec = a_set("a:2/1")["spec"]
    spec["template"]["cliques"][0]["spec"]["podSpec"]["hostNetwork"] = True
    sim.api.patch("PodCliqueSet", "wl", {"spec": spec})
    sim.settle()
    first, second = sim.pods()
    actors.force_delete(sim, first)
    sim.settle()
    actors.run_all(sim)
    sim.settle()
    actors.force_delete(sim, second)
    summary = sim.plan().report
    assert (summary.available, summary.updated, summary.updated_cliques) == (True, False, 0)
