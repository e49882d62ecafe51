"""Lifecycle of shared claims: created before their pods, deleted after them, repaired in between."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from grove.api.naming import labels
from tests.plan.simulator import actors
from tests.plan.simulator.claims import PROTECTION
from tests.plan.simulator.invariants import check_history
from tests.plan.simulator.shared_claims import (
    CLIQUE,
    GROUP,
    KIND,
    SET,
    a_template,
    claims,
    owner,
    sharing,
    used,
)
from tests.plan.simulator.simulator import Simulator, settled

# Order of writes.


def after(sim: Simulator, intent: str) -> set[str]:
    """The ids of all writes that must succeed before."""
    by_id = {found.id: found for found in sim.plan().intents}
    found: set[str] = set()
    reach = [*by_id[intent].after]
    while reach:
        each = reach.pop()
        found.add(each)
        reach += by_id[each].after
    return found


def test_claims_created_after_owner_before_gang_and_pods():
    sim = Simulator(sharing(set_="t/", group="t/", clique="t/"))
    assert after(sim, f"create {KIND} ns/wl-0-a-1-t") == {"create PodClique ns/wl-0-a"}
    assert after(sim, f"create {KIND} ns/wl-0-x-0-t") == {"create PodCliqueScalingGroup ns/wl-0-x"}
    created = {f"create {KIND} ns/wl-0-{name}-t" for name in ("a-0", "a-1", "x-0")} | {
        f"create {KIND} ns/wl-0-t"
    }
    assert created <= after(sim, "create PodGang ns/wl-0")
    scaled = after(sim, "create PodGang ns/wl-0-x-0")
    assert f"create {KIND} ns/wl-0-x-1-t" in scaled
    assert f"create {KIND} ns/wl-0-a-0-t" not in scaled, "those belong to other pods"


def test_claim_of_all_replicas_is_waited_for():
    sim = Simulator(sharing(set_="t"))
    assert not [intent.id for intent in sim.plan().intents if "PodGang" in intent.id or "Pod " in intent.id]
    sim.share()
    assert [intent for intent in sim.plan().intents if intent.id.startswith("create Pod ")]
    assert f"create {KIND} ns/wl-all-t" not in {intent.id for intent in sim.plan().intents}, (
        "the plan of the set creates it"
    )


def test_scaled_out_pod_waits_for_its_claim_only():
    sim = settled(sharing(clique="t/"))
    sim.scale("PodClique", "wl-0-a", 3)
    plan = sim.plan()
    (birth,) = (intent for intent in plan.intents if intent.id.startswith("create Pod "))
    (gang,) = (intent for intent in plan.intents if intent.id == "patch PodGang ns/wl-0")
    assert f"create {KIND} ns/wl-0-a-2-t" in birth.after
    assert f"create {KIND} ns/wl-0-a-2-t" not in gang.after, "other pods do not depend on it"


# Scale-in, deletion.


def test_scale_in_deletes_claim_after_pod_and_confirmed_count():
    sim = settled(sharing(clique="t/"))
    actors.run_all(sim)
    sim.settle()
    sim.scale("PodClique", "wl-0-a", 1)
    (gone,) = (intent for intent in sim.plan().intents if intent.id.startswith("delete Pod "))
    removal = next(intent for intent in sim.plan().intents if intent.id == f"delete {KIND} ns/wl-0-a-1-t")
    assert removal.uid == sim.api.get(KIND, "wl-0-a-1-t")["metadata"]["uid"]
    assert set(removal.after) == {"patch PodClique ns/wl-0-a", gone.id}
    sim.settle()
    assert claims(sim) == {"wl-0-a-0-t"}


def test_claim_of_staying_pod_stays_whatever_its_index():
    """The pod of index 0 has the lowest keep priority: it is deleted, and index 1 stays."""
    sim = settled(sharing(clique="t/"))
    indices = {pod.metadata.labels[labels.POD_INDEX]: name for name, pod in sim.pods("wl-0-a").items()}
    first = indices["0"]
    actors.run_all(sim)
    actors.crash(sim, first)
    sim.settle()
    sim.scale("PodClique", "wl-0-a", 1)
    sim.settle()
    actors.finish_terminating(sim)
    sim.settle()
    (left,) = sim.pods("wl-0-a").values()
    assert left.metadata.labels[labels.POD_INDEX] == "1"
    assert claims(sim) == {"wl-0-a-0-t", "wl-0-a-1-t"}, "those of the count, and the one in use"


@pytest.mark.parametrize("replicas", [1, 0])
def test_group_scale_in_deletes_claims_of_its_replicas(replicas):
    sim = settled(sharing(group="all each/", member="t/"))
    sim.scale("PodCliqueScalingGroup", "wl-0-x", replicas)
    sim.settle()
    kept = {f"wl-0-x-{index}-{name}" for index in range(replicas) for name in ("each", "b-0-t")}
    assert claims(sim) == {"wl-0-x-all-all"} | kept


def test_replica_deletes_its_claims_and_keeps_shared_ones():
    sim = settled(sharing("all each/", "t", "t/", "t", replicas=2))
    assert "wl-1-each" in claims(sim)
    sim.scale("PodCliqueSet", "wl", 1)
    actors.finish_scale_in(sim, 1)
    assert {name for name in claims(sim) if name.startswith("wl-1")} == set()
    assert "wl-all-all" in claims(sim)


def test_claim_is_deleted_before_its_clique():
    """Without the clique the owner of the claim would be unknown, and the garbage collector is slow."""
    sim = settled(sharing(member="t"))
    sim.scale("PodCliqueScalingGroup", "wl-0-x", 1)
    assert f"delete {KIND} ns/wl-0-x-1-b-all-t" in after(sim, "delete PodClique ns/wl-0-x-1-b")


# Changes by others.


def test_deleted_claim_is_recreated():
    body = sharing("all each/", "t/", "t/", "t")
    sim = settled(body)
    before = claims(sim)
    for name in before:
        sim.api.delete(KIND, name)
    sim.settle()
    assert claims(sim) == before


def test_deleted_claim_recreated_after_count_confirmed():
    sim = settled(sharing(clique="t/"))
    sim.api.delete(KIND, "wl-0-a-1-t")
    (created,) = (intent for intent in sim.plan().intents if intent.id == f"create {KIND} ns/wl-0-a-1-t")
    assert created.after == ("patch PodClique ns/wl-0-a",)


def hold(sim: Simulator, name: str) -> None:
    """A user deletes a claim that a pod uses: Kubernetes keeps it until the pod is gone."""
    sim.api.patch(KIND, name, {"metadata": {"finalizers": [PROTECTION]}})
    sim.api.delete(KIND, name)


def release(sim: Simulator, name: str) -> None:
    sim.api.patch(KIND, name, {"metadata": {"finalizers": None}})


def test_claim_deleted_in_use_is_waited_for_and_reported():
    sim = settled(sharing(clique="t"))
    hold(sim, "wl-0-a-all-t")
    plan = sim.plan()
    assert (plan.intents, plan.errors) == ((), ()), "no new pod needs it, nothing can be done"
    actors.force_delete(sim, min(sim.pods("wl-0-a")))
    sim.step()
    plan = sim.plan()
    assert not [intent.id for intent in plan.intents if intent.id.startswith("create")]
    (user_error,) = plan.errors
    assert user_error.regarding is not None
    assert (user_error.regarding.name, user_error.code) == ("wl-0-a", CLIQUE)
    assert "wl-0-a-all-t, which was deleted while others use it" in user_error.message
    release(sim, "wl-0-a-all-t")
    sim.settle()
    assert len(sim.pods("wl-0-a")) == 2
    assert sim.plan().errors == ()


def test_deleted_claim_of_one_pod_delays_no_other():
    sim = settled(sharing(clique="t/"))
    hold(sim, "wl-0-a-0-t")
    for name in sim.pods("wl-0-a"):
        actors.force_delete(sim, name)
    sim.step()
    sim.step()
    assert used(sim, "wl-0-a") == [["wl-0-a-1-t"]]


def test_claim_labels_are_repaired_and_foreign_ones_kept():
    sim = settled(sharing(clique="t/"))
    edit = {labels.POD_INDEX: "7", labels.COMPONENT: "mine", "team": "blue"}
    sim.api.patch(KIND, "wl-0-a-1-t", {"metadata": {"labels": edit}})
    (repair,) = sim.plan().intents
    assert repair.body["metadata"]["labels"] == {labels.POD_INDEX: "1", labels.COMPONENT: "resource-claim"}
    sim.settle()
    assert sim.api.get(KIND, "wl-0-a-1-t")["metadata"]["labels"]["team"] == "blue"


def test_orphaned_claim_adopted_foreign_one_ignored():
    sim = settled(sharing(set_="t/", clique="t"))
    sim.api.patch(KIND, "wl-0-a-all-t", {"metadata": {"ownerReferences": None}})
    sim.settle()
    assert owner(sim, "wl-0-a-all-t") == ("PodClique", "wl-0-a")
    foreign = {"uid": "other", "kind": "Other", "name": "o", "apiVersion": "v1", "controller": True}
    sim.api.patch(KIND, "wl-0-t", {"metadata": {"ownerReferences": [foreign]}})
    sim.scale("PodCliqueSet", "wl", 0)
    sim.settle()
    assert claims(sim) == {"wl-0-t"}


def test_orphaned_shared_claim_adopted_after_set_confirmed():
    sim = settled(sharing(set_="t"))
    sim.api.patch(KIND, "wl-all-t", {"metadata": {"ownerReferences": None}})
    plan = sim.plan_set()
    (patch,) = (intent for intent in plan.intents if intent.id == f"patch {KIND} ns/wl-all-t")
    assert patch.after == ("patch PodCliqueSet ns/wl",)
    sim.execute(plan)
    assert owner(sim, "wl-all-t") == ("PodCliqueSet", "wl")


def test_upstream_claims_are_adopted_without_a_write():
    """They have the same names, labels and owners."""
    sim = settled(sharing("all each/", "all each/", "all each/", "t"))
    sim.restart_operator()
    assert sim.plan().intents == ()


# Stale caches.


def check_old_counts(sim: Simulator) -> None:
    """A plan from stale counts changes no claim."""
    before = claims(sim)
    for lag in range(1, 8):
        old = {"PodClique": lag, "PodCliqueScalingGroup": lag}
        sim.execute(replace(sim.plan(lag=old), status_updates=()))
        assert claims(sim) == before, lag


def test_stale_count_neither_deletes_nor_creates_claims():
    sim = settled(sharing(group="t/", clique="t/"))
    sim.scale("PodClique", "wl-0-a", 1)
    sim.scale("PodCliqueScalingGroup", "wl-0-x", 1)
    sim.settle()
    check_old_counts(sim)
    for kind, name in (("PodClique", "wl-0-a"), ("PodCliqueScalingGroup", "wl-0-x")):
        sim.scale(kind, name, 2)
    sim.settle()
    check_old_counts(sim)


def test_stale_claims_are_not_created_twice():
    sim = settled(sharing("all each/", "t/", "t/", "t"))
    created = [write.key for write in sim.api.history if write.verb == "create" and write.key[0] == KIND]
    for lag in range(1, 12):
        sim.execute(sim.plan(lag={KIND: lag}))
    again = [write.key for write in sim.api.history if write.verb == "create" and write.key[0] == KIND]
    assert again == created


# Missing templates.


@pytest.mark.parametrize(
    ("body", "owner", "code", "part"),
    [
        (sharing(set_="ext/"), None, SET, "the set"),
        (sharing(group="ext"), ("PodCliqueScalingGroup", "wl-0-x"), GROUP, "x"),
        (sharing(clique="ext/"), ("PodClique", "wl-0-a"), CLIQUE, "a"),
    ],
)
def test_missing_template_blocks_creation_and_reported_once(body, owner, code, part):
    sim = Simulator(body)
    sim.settle()
    plan = sim.plan()
    assert plan.intents == (), "nothing is sent until it exists"
    assert sim.pods("wl-0-a") == {} or code == GROUP
    (user_error,) = plan.errors
    regarding = user_error.regarding
    assert (regarding and (regarding.kind, regarding.name), user_error.code) == (owner, code)
    assert user_error.message == (
        f"there is no ResourceClaimTemplate ns/ext, which resourceSharing of {part} refers to: create it"
    )
    sim.claim_templates = {("ns", "ext"): a_template("ns", "ext")}
    sim.settle()
    assert len(sim.pods()) == 4
    assert sim.plan().errors == ()
    sim.claim_templates = {}
    assert (sim.plan().intents, sim.plan().errors) == ((), ()), "no part needs it any more"


def test_gang_not_created_if_one_clique_lacks_a_claim():
    sim = Simulator(sharing(clique="ext"))
    sim.step()
    sim.step()
    assert sim.api.all("PodGang").keys() == {"wl-0-x-0"}, "the base gang waits, the scaled one is complete"


def test_missing_template_of_set_claim_is_reported_by_the_set():
    sim = Simulator(sharing(set_="ext"))
    sim.step()
    assert sim.plan().errors == ()
    (user_error,) = sim.plan_set().errors
    assert (user_error.regarding, user_error.code) == (None, SET)
    assert sim.pods() == {}


def test_unlistable_claims_delay_only_sharing_sets():
    sim, other = Simulator(sharing(clique="t")), Simulator(sharing())
    for each in (sim, other):
        each.claims_visible = False
        each.step()
        each.step()
    (user_error,) = sim.plan().errors
    assert user_error.code == SET
    assert "the cluster must serve resource.k8s.io/v1" in user_error.message
    assert not sim.pods("wl-0-a")
    assert sim.pods("wl-0-x-1-b"), "a gang that shares nothing"
    assert len(other.pods()) == 4
    assert other.plan().errors == ()


def test_claim_stays_while_pods_of_a_deleted_clique_use_it():
    sim = settled(sharing(group="t/", groups="x:1/1=b"))
    sim.api.delete("PodClique", "wl-0-x-0-b")
    sim.scale("PodCliqueScalingGroup", "wl-0-x", 0)
    sim.settle()
    assert "wl-0-x-0-t" in claims(sim)
    actors.collect_garbage(sim)
    actors.finish_terminating(sim)
    sim.settle()
    assert "wl-0-x-0-t" not in claims(sim)
    check_history(sim)


# Owners.


def test_claim_create_names_the_clique_or_group_that_owns_it():
    plan = Simulator(sharing(set_="t/", group="t/", clique="t")).plan()
    owners = {
        intent.target.name: intent.regarding and (intent.regarding.kind, intent.regarding.name)
        for intent in plan.intents
        if intent.target.kind == KIND
    }
    assert owners == {
        "wl-0-t": None,
        "wl-0-x-0-t": ("PodCliqueScalingGroup", "wl-0-x"),
        "wl-0-x-1-t": ("PodCliqueScalingGroup", "wl-0-x"),
        "wl-0-a-all-t": ("PodClique", "wl-0-a"),
    }
