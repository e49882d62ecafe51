"""What cliques, groups, gangs and replicas report of themselves, from nothing to ready and back."""

from __future__ import annotations

from grove.plan.moments import rfc3339
from tests.plan import hands
from tests.plan.builders import a_clique, a_set
from tests.plan.test_scaling import running
from tests.plan.world import World

NO_UPDATE = {"UpdateInProgress": ("False", "NoActiveUpdate")}


def conditions(world: World, kind: str, name: str) -> dict[str, tuple[str, str]]:
    found = world.api.get(kind, name)["status"]["conditions"]
    return {fact["type"]: (fact["status"], fact["reason"]) for fact in found}


def counts(world: World, kind: str, name: str) -> dict[str, int]:
    status = world.api.get(kind, name)["status"]
    return {key: value for key, value in status.items() if key.endswith("eplicas") and value}


def messages(world: World, kind: str, name: str) -> set[str]:
    return {fact["message"] for fact in world.api.get(kind, name)["status"]["conditions"]}


def test_a_clique_counts_its_pods_on_their_way():
    world = World(a_set("a:2/1 b:1", "x:2/1=b"))
    world.settle()
    name = "wl-0-a"
    assert counts(world, "PodClique", name) == {"replicas": 2, "updatedReplicas": 2}
    assert counts(world, "PodClique", "wl-0-x-1-b")["scheduleGatedReplicas"] == 1
    assert conditions(world, "PodClique", name) == {
        "PodCliqueScheduled": ("False", "InsufficientScheduledPods"),
        "MinAvailableBreached": ("True", "ScheduledReplicasBelowMinAvailable"),
        **NO_UPDATE,
    }
    hands.run(world, next(iter(world.pods(name))))
    world.settle()
    assert counts(world, "PodClique", name) == {
        "replicas": 2,
        "readyReplicas": 1,
        "scheduledReplicas": 1,
        "updatedReplicas": 2,
    }
    assert conditions(world, "PodClique", name) == {
        "WasScheduled": ("True", "PodsHadNodes"),
        "PodCliqueScheduled": ("True", "SufficientScheduledPods"),
        "MinAvailableBreached": ("False", "SufficientReadyPods"),
        **NO_UPDATE,
    }


def test_a_pod_behind_any_gate_counts_as_gated():
    body = a_set("a:1 b:1", "x:2/1=b")
    body["spec"]["template"]["cliques"][1] = a_clique("b:1", schedulingGates=[{"name": "example.com/mine"}])
    world = World(body)
    world.settle()
    assert counts(world, "PodClique", "wl-0-a").get("scheduleGatedReplicas") is None
    assert counts(world, "PodClique", "wl-0-x-0-b")["scheduleGatedReplicas"] == 1, "behind the user's alone"
    assert counts(world, "PodClique", "wl-0-x-1-b")["scheduleGatedReplicas"] == 1, (
        "behind ours and the user's"
    )


def crash(world: World, name: str) -> None:
    """A container of the pod fails and is started again."""
    died = {"name": "main", "ready": False, "lastState": {"terminated": {"exitCode": 1}}}
    facts = [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "False"}]
    status = {"phase": "Running", "conditions": facts, "containerStatuses": [died]}
    world.api.patch("Pod", name, {"status": status}, status=True)


def test_a_clique_whose_pods_crash_is_breached_and_says_since_when():
    world = running("a:1")
    (name,) = world.pods()
    world.now += 60
    crash(world, name)
    world.settle()
    assert conditions(world, "PodClique", "wl-0-a")["MinAvailableBreached"] == (
        "True",
        "InsufficientReadyPods",
    )
    since = rfc3339(world.now)
    world.now += 60
    hands.run(world, name)
    crash(world, name)
    world.settle()
    facts = world.api.get("PodClique", "wl-0-a")["status"]["conditions"]
    assert [fact["lastTransitionTime"] for fact in facts if fact["type"] == "MinAvailableBreached"] == [since]


def test_pods_that_are_still_being_prepared_breach_nothing():
    world = World(a_set("a:1"))
    world.settle()
    hands.schedule(world, *world.pods())
    world.settle()
    assert conditions(world, "PodClique", "wl-0-a")["MinAvailableBreached"][0] == "False"
    assert not world.plan().standing.available


def test_pods_that_terminate_or_have_ended_count_for_nothing():
    world = running("a:3/1")
    first, second, _ = world.pods()
    hands.delete(world, first)
    hands.fail(world, second)
    world.publish(world.plan())
    assert counts(world, "PodClique", "wl-0-a") == {
        "replicas": 1,
        "readyReplicas": 1,
        "scheduledReplicas": 1,
        "updatedReplicas": 1,
    }


def test_a_gang_is_initialized_once_then_scheduled_then_ready():
    world = World(a_set("a:2/1 b:1"))
    gang = ("PodGang", "wl-0")
    plan = world.plan()
    world.carry_out(plan)
    world.publish(world.plan())
    assert world.api.get(*gang)["status"]["phase"] == "Pending"
    assert {name: fact[0] for name, fact in conditions(world, *gang).items()} == {
        "Initialized": "True",
        "Scheduled": "False",
        "Ready": "False",
    }
    for name in world.pods():
        hands.schedule(world, name)
    world.settle()
    assert world.api.get(*gang)["status"]["phase"] == "Starting"
    hands.run_all(world)
    world.settle()
    assert world.api.get(*gang)["status"]["phase"] == "Running"
    assert {fact[0] for fact in conditions(world, *gang).values()} == {"True"}
    hands.force_delete(world, next(iter(world.pods("wl-0-b"))))
    world.settle()
    assert conditions(world, *gang)["Initialized"][0] == "True"
    assert conditions(world, *gang)["Scheduled"][0] == "False"


def test_a_condition_that_a_scheduler_put_on_a_gang_stays():
    world = running("a:1")
    facts = world.api.get("PodGang", "wl-0")["status"]["conditions"]
    theirs = {
        "type": "Unhealthy",
        "status": "False",
        "reason": "Fine",
        "message": "",
        "lastTransitionTime": "",
    }
    world.api.patch("PodGang", "wl-0", {"status": {"conditions": [*facts, theirs]}}, status=True)
    hands.force_delete(world, next(iter(world.pods())))
    world.settle()
    assert "Unhealthy" in conditions(world, "PodGang", "wl-0")


def test_a_group_counts_whole_replicas():
    world = World(a_set("a:1 b:1 c:1", "x:2/1=b,c"))
    world.settle()
    hands.run(world, *world.pods("wl-0-a"), *world.pods("wl-0-x-0-b"))
    world.settle()
    name = ("PodCliqueScalingGroup", "wl-0-x")
    assert counts(world, *name) == {"replicas": 2}
    breach = "InsufficientAvailablePodCliqueScalingGroupReplicas"
    assert conditions(world, *name) == {"MinAvailableBreached": ("True", breach), **NO_UPDATE}
    hands.run(world, *world.pods("wl-0-x-0-c"))
    world.settle()
    one = {"scheduledReplicas": 1, "availableReplicas": 1, "updatedReplicas": 1}
    assert counts(world, *name) == {"replicas": 2, **one}
    assert conditions(world, *name)["MinAvailableBreached"][0] == "False"


def test_scaled_to_0_nothing_is_breached():
    world = running("a:1 b:1", "x:1/1=b")
    world.scale("PodClique", "wl-0-a", 0)
    world.scale("PodCliqueScalingGroup", "wl-0-x", 0)
    world.settle()
    assert conditions(world, "PodClique", "wl-0-a")["MinAvailableBreached"][0] == "False"
    assert conditions(world, "PodCliqueScalingGroup", "wl-0-x")["MinAvailableBreached"][0] == "False"
    assert counts(world, "PodClique", "wl-0-a") == counts(world, "PodCliqueScalingGroup", "wl-0-x") == {}
    assert messages(world, "PodClique", "wl-0-a") >= {"0 of 0 pods are scheduled, 0 are needed"}
    assert messages(world, "PodClique", "wl-0-a") >= {"0 of 0 pods are ready, 0 are needed"}
    assert messages(world, "PodCliqueScalingGroup", "wl-0-x") >= {"0 of 0 replicas are sound, 0 are needed"}


def test_selectors_for_autoscalers_are_on_what_can_be_scaled_by_itself():
    world = running("a:1 b:1", "x:1/1=b")
    managed = "app.kubernetes.io/managed-by=grove-operator,app.kubernetes.io/part-of=wl"
    of = {name: world.api.get("PodClique", name)["status"] for name in ("wl-0-a", "wl-0-x-0-b")}
    assert of["wl-0-a"]["hpaPodSelector"] == f"{managed},grove.io/podclique=wl-0-a"
    assert "hpaPodSelector" not in of["wl-0-x-0-b"]
    group = world.api.get("PodCliqueScalingGroup", "wl-0-x")["status"]
    assert group["selector"] == f"{managed},grove.io/podcliquescalinggroup=wl-0-x"


def test_current_hashes_are_told_once_every_pod_is_new():
    world = running("a:2/1")
    status = world.api.get("PodClique", "wl-0-a")["status"]
    old = status["currentPodTemplateHash"], status["currentPodCliqueSetGenerationHash"]
    spec = a_set("a:2/1")["spec"]
    spec["template"]["cliques"][0]["spec"]["podSpec"]["hostNetwork"] = True
    world.api.patch("PodCliqueSet", "wl", {"spec": spec})
    world.settle()
    first, second = world.pods()
    hands.force_delete(world, first)
    world.settle()
    status = world.api.get("PodClique", "wl-0-a")["status"]
    assert status["updatedReplicas"] == 1
    assert (status["currentPodTemplateHash"], status["currentPodCliqueSetGenerationHash"]) == old
    hands.force_delete(world, second)
    world.settle()
    status = world.api.get("PodClique", "wl-0-a")["status"]
    labels = world.api.get("PodClique", "wl-0-a")["metadata"]["labels"]
    assert status["currentPodTemplateHash"] == labels["grove.io/pod-template-hash"] != old[0]
    assert status["currentPodCliqueSetGenerationHash"] != old[1]


def test_a_replica_stands_as_its_parts_do():
    world = World(a_set("a:1 b:1", "x:2/1=b"))
    world.settle()
    before = world.plan().standing
    assert (before.available, before.updated, before.cliques, before.groups) == (False, False, 1, 1)
    assert (before.updated_cliques, before.updated_groups) == (0, 1), "who does not answer is not done"
    hands.run(world, *world.pods("wl-0-a"), *world.pods("wl-0-x-0-b"))
    world.settle()
    assert world.plan().standing.available
    assert world.plan().standing.updated


def lose_for_a_while(world: World, clique: str) -> None:
    """A pod of the clique fails, and so does its successor, which is replaced only later."""
    for _ in range(2):
        name = list(world.pods(clique))[-1]
        hands.run(world, name)
        hands.fail(world, name)
        world.settle()


def test_a_pod_that_fails_above_the_minimum_makes_nothing_outdated():
    world = running("a:2/1 b:2/1", "x:1/1=b")
    for clique in ("wl-0-a", "wl-0-x-0-b"):
        lose_for_a_while(world, clique)
        assert counts(world, "PodClique", clique)["replicas"] == 1
    group = counts(world, "PodCliqueScalingGroup", "wl-0-x")
    assert (group["availableReplicas"], group["updatedReplicas"]) == (1, 1)
    standing = world.plan().standing
    assert (standing.available, standing.updated) == (True, True)
    assert (standing.updated_cliques, standing.updated_groups) == (1, 1)
    assert not standing.rolled, "an update does not go on to another replica while one lacks pods"


def test_pods_that_are_yet_to_be_made_are_not_up_to_date():
    world = running("a:2/1")
    spec = a_set("a:2/1")["spec"]
    spec["template"]["cliques"][0]["spec"]["podSpec"]["hostNetwork"] = True
    world.api.patch("PodCliqueSet", "wl", {"spec": spec})
    world.settle()
    first, second = world.pods()
    hands.force_delete(world, first)
    world.settle()
    hands.run_all(world)
    world.settle()
    hands.force_delete(world, second)
    standing = world.plan().standing
    assert (standing.available, standing.updated, standing.updated_cliques) == (True, False, 0)
