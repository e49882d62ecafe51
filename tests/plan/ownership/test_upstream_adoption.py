"""Objects that upstream's operator created are adopted: no rollout, no blocked deletion."""

from __future__ import annotations

from grove.api.naming import labels
from grove.plan.desired.template_hash import is_own_hash
from tests.plan.builders import a_set
from tests.plan.simulator import actors, updates
from tests.plan.simulator.simulator import Simulator
from tests.plan.test_scaling import running

FINALIZERS = {
    "PodClique": "grove.io/podclique.grove.io",
    "PodCliqueScalingGroup": "grove.io/podcliquescalinggroup.grove.io",
}
THEIR_HASH = "6f8b94c7d5f4b9cd58"


def upstreams(cliques: str = "a:2/1 b:1", groups: str = "x:2/1=b") -> Simulator:
    """A running workload as upstream creates it: its finalizers and hashes, without our labels."""
    sim = running(cliques, groups)
    for kind, finalizer in FINALIZERS.items():
        for name in sim.api.all(kind):
            sim.api.patch(kind, name, {"metadata": {"finalizers": [finalizer, "example.com/other"]}})
    for kind in ("PodClique", "Pod"):
        for name in sim.api.all(kind):
            theirs = {labels.CLIQUE_TEMPLATE: None, labels.TEMPLATE_HASH: THEIR_HASH}
            sim.api.patch(kind, name, {"metadata": {"labels": theirs}})
    for name in sim.api.all("PodGang"):
        sim.api.patch("PodGang", name, {"metadata": {"labels": {labels.SET_REPLICA: None}}})
    hashes = {"currentGenerationHash": "7d9f8c5b6x"}
    sim.api.patch("PodCliqueSet", "wl", {"status": hashes}, status=True)
    return sim


def test_takeover_reports_no_update():
    sim = upstreams()
    pods = set(sim.pods())
    updates.converge(sim)
    assert set(sim.pods()) == pods
    assert updates.progress(sim) == {}
    assert updates.status(sim)["updatedReplicas"] == 1
    assert is_own_hash(updates.status(sim)["currentGenerationHash"])


def test_takeover_with_stale_pods_replaces_none():
    """Only pods are stale: the cliques are known to be ours, and an update to have started."""
    sim = upstreams("a:2/1", "")
    before = len(sim.api.past["Pod"])
    updates.converge(sim)
    pods, changes = set(sim.pods()), len(sim.api.past["Pod"]) - before
    progress = {"updateStartedAt": "2027-01-15T08:00:00Z", "currentlyUpdating": [{"replicaIndex": 0}]}
    sim.api.patch("PodCliqueSet", "wl", {"status": {"updateProgress": progress}}, status=True)
    plan = sim.plan(lag={"Pod": changes})
    assert any(intent.id.startswith("delete Pod ") for intent in plan.intents)
    sim.execute(plan)
    assert set(sim.pods()) == pods
    assert not any(pod.metadata.deletion_timestamp for pod in sim.pods().values())


def test_takeover_with_pods_cached_before_relabel_replaces_none():
    """The cliques are known to be upstream's, but the events of their pods are still to come."""
    sim = upstreams("a:2/1", "")
    pods = set(sim.pods())
    for lag in range(1, len(pods) + 1):
        sim.execute(sim.plan(lag={"Pod": lag}))
    updates.converge(sim)
    assert set(sim.pods()) == pods
    assert updates.progress(sim) == {}


def test_takeover_replaces_no_pod_and_keeps_references():
    sim = upstreams()
    pods, references = set(sim.pods()), sim.references("wl-0")
    before = len(sim.api.history)
    sim.settle()
    assert set(sim.pods()) == pods
    assert sim.references("wl-0") == references
    assert {write.verb for write in sim.api.history[before:]} == {"update"}


def test_pod_spec_in_upstreams_form_is_the_same():
    sim = upstreams("a:2/1", "")
    pods = set(sim.pods())
    spec = sim.api.get("PodClique", "wl-0-a")["spec"]["podSpec"]
    spec["containers"] = [{**container, "resources": {}} for container in spec["containers"]]
    sim.api.patch("PodClique", "wl-0-a", {"spec": {"podSpec": spec}})
    sim.settle()
    assert set(sim.pods()) == pods
    assert sim.plan().report.updated


def test_upstream_finalizers_removed_others_kept():
    sim = upstreams()
    sim.settle()
    for kind in FINALIZERS:
        assert all(b["metadata"]["finalizers"] == ["example.com/other"] for b in sim.api.objects(kind))


def test_gang_is_found_by_name_and_gets_replica_label():
    sim = upstreams()
    sim.settle()
    assert all(gang["metadata"]["labels"][labels.SET_REPLICA] == "0" for gang in sim.api.objects("PodGang"))


def test_pods_of_same_template_get_our_hash_count_as_updated():
    sim = upstreams()
    sim.settle()
    for clique in sim.api.objects("PodClique"):
        ours = clique["metadata"]["labels"][labels.TEMPLATE_HASH]
        pods = sim.pods(clique["metadata"]["name"]).values()
        assert {pod.metadata.labels[labels.TEMPLATE_HASH] for pod in pods} == {ours}
        assert clique["status"]["updatedReplicas"] == clique["spec"]["replicas"]
    assert sim.plan().report.updated


def test_pod_outdated_for_upstream_is_outdated_here():
    sim = upstreams("a:2/1", "")
    old, new = sim.pods()
    sim.api.patch("Pod", old, {"metadata": {"labels": {labels.TEMPLATE_HASH: "older"}}})
    sim.settle()
    ours = sim.api.get("PodClique", "wl-0-a")["metadata"]["labels"][labels.TEMPLATE_HASH]
    hashes = {name: pod.metadata.labels[labels.TEMPLATE_HASH] for name, pod in sim.pods().items()}
    assert hashes == {old: "older", new: ours}


def test_pods_of_changed_template_stay_outdated():
    sim = upstreams("a:1", "")
    body = a_set("a:1")
    body["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["containers"][0]["image"] = "another"
    sim.api.patch("PodCliqueSet", "wl", {"spec": body["spec"]})
    sim.settle()
    (pod,) = sim.pods().values()
    assert pod.metadata.labels[labels.TEMPLATE_HASH] == THEIR_HASH
    assert not sim.plan().report.updated


def test_interrupted_takeover_is_completed_by_next_plan():
    sim = upstreams("a:3/1", "")
    relabel = [intent for intent in sim.plan().intents if intent.id.startswith("patch Pod ")]
    (clique,) = (i for i in sim.plan().intents if i.id.startswith("patch PodClique "))
    assert set(clique.after) == {intent.id for intent in relabel}
    name = relabel[0].target.name
    sim.api.patch("Pod", name, relabel[0].body)
    sim.settle()
    assert sim.plan().report.updated


def test_references_missing_from_upstream_are_added():
    sim = upstreams("a:3/1", "")
    pods = set(sim.pods())
    gang = sim.api.get("PodGang", "wl-0")["spec"]
    del gang["podgroups"][0]["podReferences"][1:]
    sim.api.patch("PodGang", "wl-0", {"spec": gang})
    sim.settle()
    assert set(sim.references("wl-0")["wl-0-a"]) == set(sim.pods()) == pods


def test_deleted_cliques_do_not_wait_for_upstreams_finalizer():
    sim = running("a:1 b:1", "x:2/1=b")
    for kind, finalizer in FINALIZERS.items():
        for name in sim.api.all(kind):
            sim.api.patch(kind, name, {"metadata": {"finalizers": [finalizer]}})
    sim.scale("PodCliqueSet", "wl", 0)
    actors.finish_scale_in(sim, 0)
    assert not any(sim.api.all(kind) for kind in (*FINALIZERS, "PodGang", "Pod"))


def test_terminating_set_removes_upstreams_finalizers():
    sim = running("a:1")
    sim.api.patch("PodCliqueSet", "wl", {"metadata": {"finalizers": ["grove.io/podcliqueset.grove.io"]}})
    sim.api.patch("PodClique", "wl-0-a", {"metadata": {"finalizers": [FINALIZERS["PodClique"]]}})
    sim.api.delete("PodCliqueSet", "wl")
    sim.api.delete("PodClique", "wl-0-a")
    sim.step()
    assert not sim.api.all("PodClique")
