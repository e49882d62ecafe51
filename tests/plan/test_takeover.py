"""Objects that upstream's operator made are taken over as they are: nothing rolls, nothing hangs."""

from __future__ import annotations

from grove.api import labels
from grove.plan.hashes import is_ours
from tests.plan import hands, updating
from tests.plan.builders import a_set
from tests.plan.test_scaling import running
from tests.plan.world import World

FINALIZERS = {
    "PodClique": "grove.io/podclique.grove.io",
    "PodCliqueScalingGroup": "grove.io/podcliquescalinggroup.grove.io",
}
THEIR_HASH = "6f8b94c7d5f4b9cd58"


def upstreams(cliques: str = "a:2/1 b:1", groups: str = "x:2/1=b") -> World:
    """A running workload as upstream would have made it: its finalizers and hashes, without our labels."""
    world = running(cliques, groups)
    for kind, finalizer in FINALIZERS.items():
        for name in world.api.all(kind):
            world.api.patch(kind, name, {"metadata": {"finalizers": [finalizer, "example.com/other"]}})
    for kind in ("PodClique", "Pod"):
        for name in world.api.all(kind):
            theirs = {labels.CLIQUE_TEMPLATE: None, labels.TEMPLATE_HASH: THEIR_HASH}
            world.api.patch(kind, name, {"metadata": {"labels": theirs}})
    for name in world.api.all("PodGang"):
        world.api.patch("PodGang", name, {"metadata": {"labels": {labels.SET_REPLICA: None}}})
    hashes = {"currentGenerationHash": "7d9f8c5b6x"}
    world.api.patch("PodCliqueSet", "wl", {"status": hashes}, status=True)
    return world


def test_no_update_is_told_of():
    world = upstreams()
    pods = set(world.pods())
    updating.quiet(world)
    assert set(world.pods()) == pods
    assert updating.progress(world) == {}
    assert updating.status(world)["updatedReplicas"] == 1
    assert is_ours(updating.status(world)["currentGenerationHash"])


def test_who_sees_pods_as_they_were_before_the_takeover_replaces_none():
    """All else it sees as it is: that the cliques are ours, and that an update has begun."""
    world = upstreams("a:2/1", "")
    before = len(world.api.past["Pod"])
    updating.quiet(world)
    pods, changes = set(world.pods()), len(world.api.past["Pod"]) - before
    progress = {"updateStartedAt": "2027-01-15T08:00:00Z", "currentlyUpdating": [{"replicaIndex": 0}]}
    world.api.patch("PodCliqueSet", "wl", {"status": {"updateProgress": progress}}, status=True)
    plan = world.plan(lag={"Pod": changes})
    assert any(intent.id.startswith("delete Pod ") for intent in plan.intents)
    world.carry_out(plan)
    assert set(world.pods()) == pods
    assert not any(pod.metadata.deletion_timestamp for pod in world.pods().values())


def test_nothing_rolls_and_references_stay():
    world = upstreams()
    pods, references = set(world.pods()), world.references("wl-0")
    before = len(world.api.history)
    world.settle()
    assert set(world.pods()) == pods
    assert world.references("wl-0") == references
    assert {deed.verb for deed in world.api.history[before:]} == {"update"}


def test_a_pod_spec_that_upstream_spells_its_own_way_is_the_same():
    world = upstreams("a:2/1", "")
    pods = set(world.pods())
    spec = world.api.get("PodClique", "wl-0-a")["spec"]["podSpec"]
    spec["containers"] = [{**container, "resources": {}} for container in spec["containers"]]
    world.api.patch("PodClique", "wl-0-a", {"spec": {"podSpec": spec}})
    world.settle()
    assert set(world.pods()) == pods
    assert world.plan().standing.updated


def test_finalizers_of_upstream_are_stripped_and_those_of_others_kept():
    world = upstreams()
    world.settle()
    for kind in FINALIZERS:
        assert all(b["metadata"]["finalizers"] == ["example.com/other"] for b in world.api.objects(kind))


def test_a_gang_is_found_by_its_name_and_gets_the_label_of_its_replica():
    world = upstreams()
    world.settle()
    assert all(gang["metadata"]["labels"][labels.SET_REPLICA] == "0" for gang in world.api.objects("PodGang"))


def test_pods_of_the_same_template_get_our_hash_and_count_as_updated():
    world = upstreams()
    world.settle()
    for clique in world.api.objects("PodClique"):
        ours = clique["metadata"]["labels"][labels.TEMPLATE_HASH]
        pods = world.pods(clique["metadata"]["name"]).values()
        assert {pod.metadata.labels[labels.TEMPLATE_HASH] for pod in pods} == {ours}
        assert clique["status"]["updatedReplicas"] == clique["spec"]["replicas"]
    assert world.plan().standing.updated


def test_a_pod_that_was_old_for_upstream_is_old_for_us():
    world = upstreams("a:2/1", "")
    old, new = world.pods()
    world.api.patch("Pod", old, {"metadata": {"labels": {labels.TEMPLATE_HASH: "older"}}})
    world.settle()
    ours = world.api.get("PodClique", "wl-0-a")["metadata"]["labels"][labels.TEMPLATE_HASH]
    hashes = {name: pod.metadata.labels[labels.TEMPLATE_HASH] for name, pod in world.pods().items()}
    assert hashes == {old: "older", new: ours}


def test_pods_of_a_template_that_changed_meanwhile_stay_old():
    world = upstreams("a:1", "")
    body = a_set("a:1")
    body["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["containers"][0]["image"] = "another"
    world.api.patch("PodCliqueSet", "wl", {"spec": body["spec"]})
    world.settle()
    (pod,) = world.pods().values()
    assert pod.metadata.labels[labels.TEMPLATE_HASH] == THEIR_HASH
    assert not world.plan().standing.updated


def test_a_takeover_that_stops_in_the_middle_is_finished_by_the_next_plan():
    world = upstreams("a:3/1", "")
    relabel = [intent for intent in world.plan().intents if intent.id.startswith("patch Pod ")]
    (clique,) = (i for i in world.plan().intents if i.id.startswith("patch PodClique "))
    assert set(clique.after) == {intent.id for intent in relabel}
    name = relabel[0].target.name
    world.api.patch("Pod", name, relabel[0].body)
    world.settle()
    assert world.plan().standing.updated


def test_references_that_upstream_had_not_yet_written_are_added():
    world = upstreams("a:3/1", "")
    pods = set(world.pods())
    gang = world.api.get("PodGang", "wl-0")["spec"]
    del gang["podgroups"][0]["podReferences"][1:]
    world.api.patch("PodGang", "wl-0", {"spec": gang})
    world.settle()
    assert set(world.references("wl-0")["wl-0-a"]) == set(world.pods()) == pods


def test_cliques_that_are_deleted_do_not_hang_on_upstreams_finalizer():
    world = running("a:1 b:1", "x:2/1=b")
    for kind, finalizer in FINALIZERS.items():
        for name in world.api.all(kind):
            world.api.patch(kind, name, {"metadata": {"finalizers": [finalizer]}})
    world.scale("PodCliqueSet", "wl", 0)
    hands.see_off(world, 0)
    assert not any(world.api.all(kind) for kind in (*FINALIZERS, "PodGang", "Pod"))


def test_a_set_that_goes_frees_its_cliques_of_upstreams_finalizer():
    world = running("a:1")
    world.api.patch("PodCliqueSet", "wl", {"metadata": {"finalizers": ["grove.io/podcliqueset.grove.io"]}})
    world.api.patch("PodClique", "wl-0-a", {"metadata": {"finalizers": [FINALIZERS["PodClique"]]}})
    world.api.delete("PodCliqueSet", "wl")
    world.api.delete("PodClique", "wl-0-a")
    world.step()
    assert not world.api.all("PodClique")
