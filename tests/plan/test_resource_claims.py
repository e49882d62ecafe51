"""Shared claims in the course of things: made before their users, gone after them, mended in between."""

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

# The order of things.


def after(sim: Simulator, intent: str) -> set[str]:
    """Everything that must have been written before."""
    by_id = {found.id: found for found in sim.plan().intents}
    found: set[str] = set()
    reach = [*by_id[intent].after]
    while reach:
        each = reach.pop()
        found.add(each)
        reach += by_id[each].after
    return found


def test_claims_come_after_their_owner_and_before_the_gang_and_its_pods():
    sim = Simulator(sharing(set_="t/", group="t/", clique="t/"))
    assert after(sim, f"create {KIND} ns/wl-0-a-1-t") == {"create PodClique ns/wl-0-a"}
    assert after(sim, f"create {KIND} ns/wl-0-x-0-t") == {"create PodCliqueScalingGroup ns/wl-0-x"}
    made = {f"create {KIND} ns/wl-0-{name}-t" for name in ("a-0", "a-1", "x-0")} | {
        f"create {KIND} ns/wl-0-t"
    }
    assert made <= after(sim, "create PodGang ns/wl-0")
    scaled = after(sim, "create PodGang ns/wl-0-x-0")
    assert f"create {KIND} ns/wl-0-x-1-t" in scaled
    assert f"create {KIND} ns/wl-0-a-0-t" not in scaled, "that is for others"


def test_what_all_replicas_share_is_waited_for():
    sim = Simulator(sharing(set_="t"))
    assert not [intent.id for intent in sim.plan().intents if "PodGang" in intent.id or "Pod " in intent.id]
    sim.share()
    assert [intent for intent in sim.plan().intents if intent.id.startswith("create Pod ")]
    assert f"create {KIND} ns/wl-all-t" not in {intent.id for intent in sim.plan().intents}, (
        "not ours to make"
    )


def test_a_pod_that_is_added_waits_for_its_claim_alone():
    sim = settled(sharing(clique="t/"))
    sim.scale("PodClique", "wl-0-a", 3)
    plan = sim.plan()
    (birth,) = (intent for intent in plan.intents if intent.id.startswith("create Pod "))
    (gang,) = (intent for intent in plan.intents if intent.id == "patch PodGang ns/wl-0")
    assert f"create {KIND} ns/wl-0-a-2-t" in birth.after
    assert f"create {KIND} ns/wl-0-a-2-t" not in gang.after, "others come and go without it"


# Scaling in, deletion.


def test_what_is_scaled_in_goes_after_its_pod_once_the_count_is_known_to_say_so():
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


def test_the_claim_of_a_pod_that_stays_stays_whatever_its_index():
    """The pod of index 0 is missed least: it goes, and index 1 stays."""
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
def test_a_group_scaled_in_takes_the_claims_of_its_replicas_along(replicas):
    sim = settled(sharing(group="all each/", member="t/"))
    sim.scale("PodCliqueScalingGroup", "wl-0-x", replicas)
    sim.settle()
    kept = {f"wl-0-x-{index}-{name}" for index in range(replicas) for name in ("each", "b-0-t")}
    assert claims(sim) == {"wl-0-x-all-all"} | kept


def test_a_replica_takes_its_claims_along_and_leaves_what_all_share():
    sim = settled(sharing("all each/", "t", "t/", "t", replicas=2))
    assert "wl-1-each" in claims(sim)
    sim.scale("PodCliqueSet", "wl", 1)
    actors.finish_scale_in(sim, 1)
    assert {name for name in claims(sim) if name.startswith("wl-1")} == set()
    assert "wl-all-all" in claims(sim)


def test_a_claim_goes_before_the_clique_that_it_belongs_to():
    """Afterwards nobody would know whose it was, and the garbage collector takes its time."""
    sim = settled(sharing(member="t"))
    sim.scale("PodCliqueScalingGroup", "wl-0-x", 1)
    assert f"delete {KIND} ns/wl-0-x-1-b-all-t" in after(sim, "delete PodClique ns/wl-0-x-1-b")


# What others do to them.


def test_one_that_was_deleted_comes_back():
    body = sharing("all each/", "t/", "t/", "t")
    sim = settled(body)
    before = claims(sim)
    for name in before:
        sim.api.delete(KIND, name)
    sim.settle()
    assert claims(sim) == before


def test_one_that_was_deleted_is_made_again_once_the_count_is_known_to_ask_for_it():
    sim = settled(sharing(clique="t/"))
    sim.api.delete(KIND, "wl-0-a-1-t")
    (made,) = (intent for intent in sim.plan().intents if intent.id == f"create {KIND} ns/wl-0-a-1-t")
    assert made.after == ("patch PodClique ns/wl-0-a",)


def hold(sim: Simulator, name: str) -> None:
    """Somebody deletes a claim that a pod uses: Kubernetes keeps it until the pod is gone."""
    sim.api.patch(KIND, name, {"metadata": {"finalizers": [PROTECTION]}})
    sim.api.delete(KIND, name)


def release(sim: Simulator, name: str) -> None:
    sim.api.patch(KIND, name, {"metadata": {"finalizers": None}})


def test_one_that_is_deleted_in_use_is_waited_for_and_that_is_told():
    sim = settled(sharing(clique="t"))
    hold(sim, "wl-0-a-all-t")
    plan = sim.plan()
    assert (plan.intents, plan.errors) == ((), ()), "nobody needs it, nothing can be done"
    actors.force_delete(sim, min(sim.pods("wl-0-a")))
    sim.step()
    plan = sim.plan()
    assert not [intent.id for intent in plan.intents if intent.id.startswith("create")]
    (user_error,) = plan.errors
    assert (user_error.clique, user_error.code) == ("wl-0-a", CLIQUE)
    assert "wl-0-a-all-t, which was deleted while others use it" in user_error.message
    release(sim, "wl-0-a-all-t")
    sim.settle()
    assert len(sim.pods("wl-0-a")) == 2
    assert sim.plan().errors == ()


def test_what_is_deleted_for_one_pod_holds_up_no_other():
    sim = settled(sharing(clique="t/"))
    hold(sim, "wl-0-a-0-t")
    for name in sim.pods("wl-0-a"):
        actors.force_delete(sim, name)
    sim.step()
    sim.step()
    assert used(sim, "wl-0-a") == [["wl-0-a-1-t"]]


def test_labels_are_mended_and_those_of_others_stay():
    sim = settled(sharing(clique="t/"))
    edit = {labels.POD_INDEX: "7", labels.COMPONENT: "mine", "team": "blue"}
    sim.api.patch(KIND, "wl-0-a-1-t", {"metadata": {"labels": edit}})
    (mended,) = sim.plan().intents
    assert mended.body["metadata"]["labels"] == {labels.POD_INDEX: "1", labels.COMPONENT: "resource-claim"}
    sim.settle()
    assert sim.api.get(KIND, "wl-0-a-1-t")["metadata"]["labels"]["team"] == "blue"


def test_an_orphan_of_ours_is_taken_back_and_what_another_controls_is_left_alone():
    sim = settled(sharing(set_="t/", clique="t"))
    sim.api.patch(KIND, "wl-0-a-all-t", {"metadata": {"ownerReferences": None}})
    sim.settle()
    assert owner(sim, "wl-0-a-all-t") == ("PodClique", "wl-0-a")
    foreign = {"uid": "other", "kind": "Other", "name": "o", "apiVersion": "v1", "controller": True}
    sim.api.patch(KIND, "wl-0-t", {"metadata": {"ownerReferences": [foreign]}})
    sim.scale("PodCliqueSet", "wl", 0)
    sim.settle()
    assert claims(sim) == {"wl-0-t"}


def test_an_orphan_that_all_share_is_taken_back_by_a_set_that_is_known_to_be_there():
    sim = settled(sharing(set_="t"))
    sim.api.patch(KIND, "wl-all-t", {"metadata": {"ownerReferences": None}})
    plan = sim.plan_set()
    (patch,) = (intent for intent in plan.intents if intent.id == f"patch {KIND} ns/wl-all-t")
    assert patch.after == ("patch PodCliqueSet ns/wl",)
    sim.execute(plan)
    assert owner(sim, "wl-all-t") == ("PodCliqueSet", "wl")


def test_upstreams_claims_are_taken_over_without_a_write():
    """They have the same names, labels and owners."""
    sim = settled(sharing("all each/", "all each/", "all each/", "t"))
    sim.restart_operator()
    assert sim.plan().intents == ()


# What is seen late.


def check_old_counts(sim: Simulator) -> None:
    """Whoever acts on counts that were changes no claim."""
    before = claims(sim)
    for lag in range(1, 8):
        old = {"PodClique": lag, "PodCliqueScalingGroup": lag}
        sim.execute(replace(sim.plan(lag=old), status_updates=()))
        assert claims(sim) == before, lag


def test_an_old_view_of_a_count_costs_no_claim_and_makes_none():
    sim = settled(sharing(group="t/", clique="t/"))
    sim.scale("PodClique", "wl-0-a", 1)
    sim.scale("PodCliqueScalingGroup", "wl-0-x", 1)
    sim.settle()
    check_old_counts(sim)
    for kind, name in (("PodClique", "wl-0-a"), ("PodCliqueScalingGroup", "wl-0-x")):
        sim.scale(kind, name, 2)
    sim.settle()
    check_old_counts(sim)


def test_an_old_view_of_claims_makes_none_twice():
    sim = settled(sharing("all each/", "t/", "t/", "t"))
    made = [write.key for write in sim.api.history if write.verb == "create" and write.key[0] == KIND]
    for lag in range(1, 12):
        sim.execute(sim.plan(lag={KIND: lag}))
    again = [write.key for write in sim.api.history if write.verb == "create" and write.key[0] == KIND]
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
    sim = Simulator(body)
    sim.settle()
    plan = sim.plan()
    assert plan.intents == (), "nothing is tried until it comes"
    assert sim.pods("wl-0-a") == {} or code == GROUP
    (user_error,) = plan.errors
    assert (user_error.clique, user_error.code) == (clique, code)
    assert user_error.message == (
        f"there is no ResourceClaimTemplate ns/ext, which resourceSharing of {who} refers to: create it"
    )
    sim.claim_templates = {("ns", "ext"): a_template("ns", "ext")}
    sim.settle()
    assert len(sim.pods()) == 4
    assert sim.plan().errors == ()
    sim.claim_templates = {}
    assert (sim.plan().intents, sim.plan().errors) == ((), ()), "nobody needs it any more"


def test_a_gang_is_not_begun_if_one_of_its_cliques_lacks_a_claim():
    sim = Simulator(sharing(clique="ext"))
    sim.step()
    sim.step()
    assert sim.api.all("PodGang").keys() == {"wl-0-x-0"}, "the base gang waits, the other one is whole"


def test_the_template_of_what_all_replicas_share_is_told_by_the_set():
    sim = Simulator(sharing(set_="ext"))
    sim.step()
    assert sim.plan().errors == ()
    (user_error,) = sim.plan_set().errors
    assert (user_error.clique, user_error.code) == ("", SET)
    assert sim.pods() == {}


def test_without_sight_of_claims_only_who_shares_waits():
    sim, other = Simulator(sharing(clique="t")), Simulator(sharing())
    for each in (sim, other):
        each.claims_visible = False
        each.step()
        each.step()
    (user_error,) = sim.plan().errors
    assert user_error.code == SET
    assert "does the cluster serve resource.k8s.io/v1" in user_error.message
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
