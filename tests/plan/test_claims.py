"""Shared claims in the course of things: made before their users, gone after them, mended in between."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from grove.api import labels
from tests.plan import hands
from tests.plan.claims import PROTECTION
from tests.plan.invariants import check_history
from tests.plan.sharers import (
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
from tests.plan.world import World, settled

# The order of things.


def after(world: World, intent: str) -> set[str]:
    """Everything that must have been written before."""
    by_id = {found.id: found for found in world.plan().intents}
    found: set[str] = set()
    reach = [*by_id[intent].after]
    while reach:
        each = reach.pop()
        found.add(each)
        reach += by_id[each].after
    return found


def test_claims_come_after_their_owner_and_before_the_gang_and_its_pods():
    world = World(sharing(set_="t/", group="t/", clique="t/"))
    assert after(world, f"create {KIND} ns/wl-0-a-1-t") == {"create PodClique ns/wl-0-a"}
    assert after(world, f"create {KIND} ns/wl-0-x-0-t") == {"create PodCliqueScalingGroup ns/wl-0-x"}
    made = {f"create {KIND} ns/wl-0-{name}-t" for name in ("a-0", "a-1", "x-0")} | {
        f"create {KIND} ns/wl-0-t"
    }
    assert made <= after(world, "create PodGang ns/wl-0")
    scaled = after(world, "create PodGang ns/wl-0-x-0")
    assert f"create {KIND} ns/wl-0-x-1-t" in scaled
    assert f"create {KIND} ns/wl-0-a-0-t" not in scaled, "that is for others"


def test_what_all_replicas_share_is_waited_for():
    world = World(sharing(set_="t"))
    assert not [intent.id for intent in world.plan().intents if "PodGang" in intent.id or "Pod " in intent.id]
    world.share()
    assert [intent for intent in world.plan().intents if intent.id.startswith("create Pod ")]
    assert f"create {KIND} ns/wl-all-t" not in {intent.id for intent in world.plan().intents}, (
        "not ours to make"
    )


def test_a_pod_that_is_added_waits_for_its_claim_alone():
    world = settled(sharing(clique="t/"))
    world.scale("PodClique", "wl-0-a", 3)
    plan = world.plan()
    (birth,) = (intent for intent in plan.intents if intent.id.startswith("create Pod "))
    (gang,) = (intent for intent in plan.intents if intent.id == "patch PodGang ns/wl-0")
    assert f"create {KIND} ns/wl-0-a-2-t" in birth.after
    assert f"create {KIND} ns/wl-0-a-2-t" not in gang.after, "others come and go without it"


# Scaling in, deletion.


def test_what_is_scaled_in_goes_after_its_pod_once_the_count_is_known_to_say_so():
    world = settled(sharing(clique="t/"))
    hands.run_all(world)
    world.settle()
    world.scale("PodClique", "wl-0-a", 1)
    (gone,) = (intent for intent in world.plan().intents if intent.id.startswith("delete Pod "))
    removal = next(intent for intent in world.plan().intents if intent.id == f"delete {KIND} ns/wl-0-a-1-t")
    assert removal.uid == world.api.get(KIND, "wl-0-a-1-t")["metadata"]["uid"]
    assert set(removal.after) == {"patch PodClique ns/wl-0-a", gone.id}
    world.settle()
    assert claims(world) == {"wl-0-a-0-t"}


def test_the_claim_of_a_pod_that_stays_stays_whatever_its_index():
    """The pod of index 0 is missed least: it goes, and index 1 stays."""
    world = settled(sharing(clique="t/"))
    indices = {pod.metadata.labels[labels.POD_INDEX]: name for name, pod in world.pods("wl-0-a").items()}
    first = indices["0"]
    hands.run_all(world)
    hands.crash(world, first)
    world.settle()
    world.scale("PodClique", "wl-0-a", 1)
    world.settle()
    hands.finish_terminating(world)
    world.settle()
    (left,) = world.pods("wl-0-a").values()
    assert left.metadata.labels[labels.POD_INDEX] == "1"
    assert claims(world) == {"wl-0-a-0-t", "wl-0-a-1-t"}, "those of the count, and the one in use"


@pytest.mark.parametrize("replicas", [1, 0])
def test_a_group_scaled_in_takes_the_claims_of_its_replicas_along(replicas):
    world = settled(sharing(group="all each/", member="t/"))
    world.scale("PodCliqueScalingGroup", "wl-0-x", replicas)
    world.settle()
    kept = {f"wl-0-x-{index}-{name}" for index in range(replicas) for name in ("each", "b-0-t")}
    assert claims(world) == {"wl-0-x-all-all"} | kept


def test_a_replica_takes_its_claims_along_and_leaves_what_all_share():
    world = settled(sharing("all each/", "t", "t/", "t", replicas=2))
    assert "wl-1-each" in claims(world)
    world.scale("PodCliqueSet", "wl", 1)
    hands.see_off(world, 1)
    assert {name for name in claims(world) if name.startswith("wl-1")} == set()
    assert "wl-all-all" in claims(world)


def test_a_claim_goes_before_the_clique_that_it_belongs_to():
    """Afterwards nobody would know whose it was, and the garbage collector takes its time."""
    world = settled(sharing(member="t"))
    world.scale("PodCliqueScalingGroup", "wl-0-x", 1)
    assert f"delete {KIND} ns/wl-0-x-1-b-all-t" in after(world, "delete PodClique ns/wl-0-x-1-b")


# What others do to them.


def test_one_that_was_deleted_comes_back():
    body = sharing("all each/", "t/", "t/", "t")
    world = settled(body)
    before = claims(world)
    for name in before:
        world.api.delete(KIND, name)
    world.settle()
    assert claims(world) == before


def test_one_that_was_deleted_is_made_again_once_the_count_is_known_to_ask_for_it():
    world = settled(sharing(clique="t/"))
    world.api.delete(KIND, "wl-0-a-1-t")
    (made,) = (intent for intent in world.plan().intents if intent.id == f"create {KIND} ns/wl-0-a-1-t")
    assert made.after == ("patch PodClique ns/wl-0-a",)


def hold(world: World, name: str) -> None:
    """Somebody deletes a claim that a pod uses: Kubernetes keeps it until the pod is gone."""
    world.api.patch(KIND, name, {"metadata": {"finalizers": [PROTECTION]}})
    world.api.delete(KIND, name)


def release(world: World, name: str) -> None:
    world.api.patch(KIND, name, {"metadata": {"finalizers": None}})


def test_one_that_is_deleted_in_use_is_waited_for_and_that_is_told():
    world = settled(sharing(clique="t"))
    hold(world, "wl-0-a-all-t")
    plan = world.plan()
    assert (plan.intents, plan.complaints) == ((), ()), "nobody needs it, nothing can be done"
    hands.force_delete(world, min(world.pods("wl-0-a")))
    world.step()
    plan = world.plan()
    assert not [intent.id for intent in plan.intents if intent.id.startswith("create")]
    (complaint,) = plan.complaints
    assert (complaint.clique, complaint.code) == ("wl-0-a", CLIQUE)
    assert "wl-0-a-all-t, which was deleted while others use it" in complaint.words
    release(world, "wl-0-a-all-t")
    world.settle()
    assert len(world.pods("wl-0-a")) == 2
    assert world.plan().complaints == ()


def test_what_is_deleted_for_one_pod_holds_up_no_other():
    world = settled(sharing(clique="t/"))
    hold(world, "wl-0-a-0-t")
    for name in world.pods("wl-0-a"):
        hands.force_delete(world, name)
    world.step()
    world.step()
    assert used(world, "wl-0-a") == [["wl-0-a-1-t"]]


def test_labels_are_mended_and_those_of_others_stay():
    world = settled(sharing(clique="t/"))
    edit = {labels.POD_INDEX: "7", labels.COMPONENT: "mine", "team": "blue"}
    world.api.patch(KIND, "wl-0-a-1-t", {"metadata": {"labels": edit}})
    (mended,) = world.plan().intents
    assert mended.body["metadata"]["labels"] == {labels.POD_INDEX: "1", labels.COMPONENT: "resource-claim"}
    world.settle()
    assert world.api.get(KIND, "wl-0-a-1-t")["metadata"]["labels"]["team"] == "blue"


def test_an_orphan_of_ours_is_taken_back_and_what_another_controls_is_left_alone():
    world = settled(sharing(set_="t/", clique="t"))
    world.api.patch(KIND, "wl-0-a-all-t", {"metadata": {"ownerReferences": None}})
    world.settle()
    assert owner(world, "wl-0-a-all-t") == ("PodClique", "wl-0-a")
    foreign = {"uid": "other", "kind": "Other", "name": "o", "apiVersion": "v1", "controller": True}
    world.api.patch(KIND, "wl-0-t", {"metadata": {"ownerReferences": [foreign]}})
    world.scale("PodCliqueSet", "wl", 0)
    world.settle()
    assert claims(world) == {"wl-0-t"}


def test_an_orphan_that_all_share_is_taken_back_by_a_set_that_is_known_to_be_there():
    world = settled(sharing(set_="t"))
    world.api.patch(KIND, "wl-all-t", {"metadata": {"ownerReferences": None}})
    plan = world.plan_set()
    (patch,) = (intent for intent in plan.intents if intent.id == f"patch {KIND} ns/wl-all-t")
    assert patch.after == ("patch PodCliqueSet ns/wl",)
    world.carry_out(plan)
    assert owner(world, "wl-all-t") == ("PodCliqueSet", "wl")


def test_upstreams_claims_are_taken_over_without_a_write():
    """They have the same names, labels and owners."""
    world = settled(sharing("all each/", "all each/", "all each/", "t"))
    world.restart_operator()
    assert world.plan().intents == ()


# What is seen late.


def check_old_counts(world: World) -> None:
    """Whoever acts on counts that were changes no claim."""
    before = claims(world)
    for lag in range(1, 8):
        old = {"PodClique": lag, "PodCliqueScalingGroup": lag}
        world.carry_out(replace(world.plan(lag=old), drafts=()))
        assert claims(world) == before, lag


def test_an_old_view_of_a_count_costs_no_claim_and_makes_none():
    world = settled(sharing(group="t/", clique="t/"))
    world.scale("PodClique", "wl-0-a", 1)
    world.scale("PodCliqueScalingGroup", "wl-0-x", 1)
    world.settle()
    check_old_counts(world)
    for kind, name in (("PodClique", "wl-0-a"), ("PodCliqueScalingGroup", "wl-0-x")):
        world.scale(kind, name, 2)
    world.settle()
    check_old_counts(world)


def test_an_old_view_of_claims_makes_none_twice():
    world = settled(sharing("all each/", "t/", "t/", "t"))
    made = [deed.key for deed in world.api.history if deed.verb == "create" and deed.key[0] == KIND]
    for lag in range(1, 12):
        world.carry_out(world.plan(lag={KIND: lag}))
    again = [deed.key for deed in world.api.history if deed.verb == "create" and deed.key[0] == KIND]
    assert again == made


# What is missing.


@pytest.mark.parametrize(
    ("body", "clique", "code", "who"),
    [
        (sharing(set_="ext/"), "", SET, "the set"),
        (sharing(group="ext"), "", GROUP, "x"),
        (sharing(clique="ext/"), "wl-0-a", CLIQUE, "a"),
    ],
)
def test_without_its_template_nothing_is_begun_and_that_is_told_once(body, clique, code, who):
    world = World(body)
    world.settle()
    plan = world.plan()
    assert plan.intents == (), "nothing is tried until it comes"
    assert world.pods("wl-0-a") == {} or code == GROUP
    (complaint,) = plan.complaints
    assert (complaint.clique, complaint.code) == (clique, code)
    assert complaint.words == (
        f"there is no ResourceClaimTemplate ns/ext, which resourceSharing of {who} refers to: create it"
    )
    world.claim_templates = {("ns", "ext"): a_template("ns", "ext")}
    world.settle()
    assert len(world.pods()) == 4
    assert world.plan().complaints == ()
    world.claim_templates = {}
    assert (world.plan().intents, world.plan().complaints) == ((), ()), "nobody needs it any more"


def test_a_gang_is_not_begun_if_one_of_its_cliques_lacks_a_claim():
    world = World(sharing(clique="ext"))
    world.step()
    world.step()
    assert world.api.all("PodGang").keys() == {"wl-0-x-0"}, "the base gang waits, the other one is whole"


def test_the_template_of_what_all_replicas_share_is_told_by_the_set():
    world = World(sharing(set_="ext"))
    world.step()
    assert world.plan().complaints == ()
    (complaint,) = world.plan_set().complaints
    assert (complaint.clique, complaint.code) == ("", SET)
    assert world.pods() == {}


def test_without_sight_of_claims_only_who_shares_waits():
    world, other = World(sharing(clique="t")), World(sharing())
    for each in (world, other):
        each.claims_visible = False
        each.step()
        each.step()
    (complaint,) = world.plan().complaints
    assert complaint.code == SET
    assert "does the cluster serve resource.k8s.io/v1" in complaint.words
    assert not world.pods("wl-0-a")
    assert world.pods("wl-0-x-1-b"), "a gang that shares nothing"
    assert len(other.pods()) == 4
    assert other.plan().complaints == ()


def test_claim_stays_while_pods_of_a_deleted_clique_use_it():
    world = settled(sharing(group="t/", groups="x:1/1=b"))
    world.api.delete("PodClique", "wl-0-x-0-b")
    world.scale("PodCliqueScalingGroup", "wl-0-x", 0)
    world.settle()
    assert "wl-0-x-0-t" in claims(world)
    hands.collect_garbage(world)
    hands.finish_terminating(world)
    world.settle()
    assert "wl-0-x-0-t" not in claims(world)
    check_history(world)
