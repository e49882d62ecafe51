"""Owned and foreign objects, and objects that were edited, orphaned or deleted by others."""

from __future__ import annotations

import pytest

from grove.api.naming import labels
from tests.plan.builders import a_set
from tests.plan.simulator import actors
from tests.plan.simulator.invariants import check_history, check_settled
from tests.plan.simulator.simulator import Simulator
from tests.plan.test_scaling import running

OTHER = {"apiVersion": "v1", "kind": "Other", "name": "o", "uid": "other", "controller": True}


def state_of(sim: Simulator) -> dict[str, list[dict]]:
    """All managed objects, without versions and statuses."""
    kinds = ("Service", "PodCliqueScalingGroup", "PodClique", "PodGang")
    return {
        kind: [
            {
                "labels": body["metadata"]["labels"],
                "annotations": body["metadata"].get("annotations") or {},
                "owners": body["metadata"].get("ownerReferences") or [],
                "finalizers": body["metadata"].get("finalizers") or [],
                "spec": body["spec"],
            }
            for body in sim.api.objects(kind)
        ]
        for kind in kinds
    }


EDITS = [
    ("Service", "wl-0", {"metadata": {"labels": {labels.NAME: "x"}}}),
    ("Service", "wl-0", {"spec": {"selector": {"app": "mine"}, "publishNotReadyAddresses": False}}),
    ("Service", "wl-0", {"metadata": {"ownerReferences": None}}),
    ("PodCliqueScalingGroup", "wl-0-x", {"spec": {"minAvailable": 2, "cliqueNames": ["a"]}}),
    ("PodCliqueScalingGroup", "wl-0-x", {"metadata": {"annotations": {"mine": "1"}}}),
    ("PodClique", "wl-0-a", {"metadata": {"labels": {labels.GANG: None, labels.TEMPLATE_HASH: "x"}}}),
    ("PodClique", "wl-0-a", {"spec": {"roleName": "x", "minAvailable": 2, "startsAfter": ["b"]}}),
    ("PodClique", "wl-0-x-1-b", {"spec": {"podSpec": {"containers": [], "hostNetwork": True}}}),
    ("PodClique", "wl-0-x-1-b", {"spec": {"autoScalingConfig": {"maxReplicas": 3}}}),
    ("PodClique", "wl-0-x-1-b", {"metadata": {"ownerReferences": []}}),
    ("PodGang", "wl-0", {"metadata": {"labels": {labels.SET_REPLICA: None, labels.SCHEDULER: "x"}}}),
    ("PodGang", "wl-0", {"metadata": {"annotations": {"mine": "1"}}}),
    ("PodGang", "wl-0", {"metadata": {"ownerReferences": None}}),
    ("PodGang", "wl-0", {"spec": {"priorityClassName": "mine"}}),
    ("PodGang", "wl-0-x-0", {"spec": {"podgroups": []}}),
]


@pytest.mark.parametrize(
    ("kind", "name", "edit"), EDITS, ids=[f"{row[0]}-{n}" for n, row in enumerate(EDITS)]
)
def test_edited_objects_are_repaired_and_no_pod_restarts(kind, name, edit):
    sim = running("a:2/1 b:1", "x:2/1=b")
    right, pods = state_of(sim), set(sim.pods())
    sim.api.patch(kind, name, edit)
    assert state_of(sim) != right
    sim.settle()
    assert state_of(sim) == right
    assert set(sim.pods()) == pods


@pytest.mark.parametrize(
    "edit",
    [
        {labels.POD_INDEX: "7"},
        {labels.POD_INDEX: "1"},
        {labels.POD_INDEX: "x"},
        {labels.POD_INDEX: None},
        {labels.NAME: "x"},
        {labels.COMPONENT: None},
        {labels.CLIQUE_TEMPLATE: None},
        {labels.GANG: "x", labels.BASE_GANG: "x"},
        {labels.GROUP: "x", labels.GROUP_REPLICA: "0"},
    ],
    ids=lambda edit: next(iter(edit)).rpartition("/")[2],
)
def test_relabelled_pod_gets_its_labels_back_and_stays(edit):
    """The host name is immutable: it decides the index, whatever a label says."""
    sim = running("a:2/1")
    object_labels = {name: pod.metadata.labels for name, pod in sim.pods().items()}
    sim.api.patch("Pod", _first(sim), {"metadata": {"labels": edit}})
    sim.settle()
    assert {name: pod.metadata.labels for name, pod in sim.pods().items()} == object_labels


def _first(sim: Simulator) -> str:
    return next(name for name, pod in sim.pods().items() if pod.spec.hostname == "wl-0-a-0")


def test_grove_labels_and_annotations_stay_on_a_gang():
    sim = running("a:1")
    note = {"grove.io/note": "kept"}
    sim.api.patch("PodGang", "wl-0", {"metadata": {"labels": note, "annotations": note}})
    assert sim.plan().intents == ()


@pytest.mark.parametrize("kind", ["Service", "PodCliqueScalingGroup", "PodClique", "PodGang"])
def test_objects_of_another_controller_are_ignored(kind):
    sim = running("a:1 b:1", "x:1/1=b")
    name = sorted(sim.api.all(kind))[0]
    theirs = {"metadata": {"ownerReferences": [OTHER], "labels": {labels.NAME: "theirs"}}}
    sim.api.patch(kind, name, theirs)
    before, count = sim.api.get(kind, name), len(sim.api.history)
    plan = sim.plan()
    assert [i.id for i in plan.intents if i.id.endswith(f"{kind} ns/{name}")] == [f"create {kind} ns/{name}"]
    sim.execute(plan)
    assert sim.api.get(kind, name) == before
    assert not [write for write in sim.api.history[count:] if write.verb in ("delete", "vanish")]


def test_pod_of_another_controller_not_counted_nor_deleted():
    sim = running("a:1")
    (mine,) = sim.pods()
    theirs = sim.api.get("Pod", mine)
    theirs["metadata"] = {"name": "wl-0-a-theirs", "labels": theirs["metadata"]["labels"]}
    theirs["metadata"]["ownerReferences"] = [OTHER]
    sim.api.create(theirs)
    assert sim.plan().intents == ()
    sim.scale("PodClique", "wl-0-a", 0)
    sim.settle()
    actors.finish_terminating(sim)
    assert list(sim.pods()) == ["wl-0-a-theirs"]


@pytest.mark.parametrize("name", ["debugging", "wl-0-a", "wl-0-a-for-debugging", "wl-0-b-12345"])
def test_uncontrolled_pod_with_foreign_name_is_ignored(name):
    """A user copied one of our pods, with labels, for debugging."""
    sim = running("a:2")
    body = sim.api.get("Pod", _first(sim))
    body["metadata"] = {"name": name, "labels": body["metadata"]["labels"]}
    sim.api.create(body)
    assert sim.plan().intents == ()
    actors.force_delete(sim, _first(sim))
    sim.settle()
    check_named = [pod for group in sim.references("wl-0").values() for pod in group]
    assert name not in check_named
    assert len(check_named) == 2
    sim.scale("PodCliqueSet", "wl", 0)
    actors.finish_scale_in(sim, 0)
    assert list(sim.pods()) == [name]


def test_pod_name_used_by_another_owner_is_skipped():
    sim = running("a:1")
    (mine,) = sim.pods()
    theirs = sim.api.get("Pod", mine)
    actors.force_delete(sim, mine)
    theirs["metadata"] = {"name": mine, "labels": theirs["metadata"]["labels"], "ownerReferences": [OTHER]}
    sim.api.create(theirs)
    sim.settle()
    assert mine not in sim.references("wl-0")["wl-0-a"]
    assert len(sim.pods()) == 2


def test_recreated_set_adopts_orphaned_children():
    sim = running("a:2/1 b:1", "x:2/1=b")
    pods = set(sim.pods())
    for kind in ("Service", "PodCliqueScalingGroup", "PodClique", "PodGang"):
        for body in list(sim.api.objects(kind)):
            if body["metadata"]["ownerReferences"][0]["kind"] == "PodCliqueSet":
                sim.api.patch(kind, body["metadata"]["name"], {"metadata": {"ownerReferences": None}})
    sim.api.delete("PodCliqueSet", "wl")
    sim.api.create(a_set("a:2/1 b:1", "x:2/1=b"))
    sim.settle()
    actors.collect_garbage(sim)
    assert set(sim.pods()) == pods
    check_settled(sim)


def test_owners_of_other_kinds_are_kept():
    sim = running("a:1")
    friend = {"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "c"}
    sim.api.patch("PodClique", "wl-0-a", {"metadata": {"ownerReferences": [friend]}})
    sim.settle()
    owners = sim.api.get("PodClique", "wl-0-a")["metadata"]["ownerReferences"]
    assert [owner["kind"] for owner in owners] == ["ConfigMap", "PodCliqueSet"]


def test_recreated_clique_adopts_orphaned_pods():
    sim = running("a:2/1")
    pods = set(sim.pods())
    for name in pods:
        sim.api.patch("Pod", name, {"metadata": {"ownerReferences": None}})
    sim.api.delete("PodClique", "wl-0-a")
    sim.settle()
    actors.collect_garbage(sim)
    assert set(sim.pods()) == pods
    uid = sim.api.get("PodClique", "wl-0-a")["metadata"]["uid"]
    assert {pod.metadata.owner_references[0].uid for pod in sim.pods().values()} == {uid}


def test_pods_of_deleted_clique_replaced_by_those_of_new_one():
    sim = running("a:2/1")
    old = set(sim.pods())
    sim.api.delete("PodClique", "wl-0-a")
    sim.settle()
    actors.collect_garbage(sim)
    actors.finish_terminating(sim)
    sim.settle()
    assert len(sim.pods()) == 2
    assert not old & set(sim.pods())
    check_history(sim)


def test_deleted_group_recreated_after_its_cliques_are_gone():
    sim = running("a:1 b:1", "x:2/1=b")
    sim.api.delete("PodCliqueScalingGroup", "wl-0-x")
    sim.step()
    actors.collect_garbage(sim)
    actors.finish_terminating(sim)
    sim.settle()
    check_settled(sim)
    check_history(sim)


def test_deleted_gang_is_recreated_with_existing_pods():
    sim = running("a:2/1")
    pods = set(sim.pods())
    sim.api.delete("PodGang", "wl-0")
    wanted = [
        "patch PodCliqueSet ns/wl",
        "create PodGang ns/wl-0",
    ]  # the set is confirmed, then the gang created
    assert [intent.id for intent in sim.step().intents] == wanted
    assert set(sim.references("wl-0")["wl-0-a"]) == set(sim.pods()) == pods


def test_gang_deleted_with_its_pods_gives_new_names():
    sim = running("a:2/1")
    old = set(sim.pods())
    sim.api.delete("PodGang", "wl-0")
    for name in old:
        actors.force_delete(sim, name)
    sim.settle()
    assert len(sim.pods()) == 2
    assert not old & set(sim.pods())


def test_pod_deleted_while_operator_down_keeps_its_name():
    """The only way in which a name is used twice: the operator cannot know that the pod existed."""
    sim = running("a:1")
    (name,) = sim.pods()
    actors.force_delete(sim, name)
    sim.restart_operator()
    sim.settle()
    assert list(sim.pods()) == [name]


def test_terminating_pod_after_restart_gets_new_name():
    sim = running("a:1")
    (name,) = sim.pods()
    actors.delete(sim, name)
    sim.restart_operator()
    sim.settle()
    actors.finish_terminating(sim)
    sim.settle()
    assert len(sim.pods()) == 1
    assert name not in sim.pods()
