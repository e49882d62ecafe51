"""A ResourceClaimTemplate of another namespace is used only if its annotation names the set's namespace."""

from __future__ import annotations

import pytest

from grove.api import annotations
from tests.plan.sharers import CLIQUE, GROUP, KIND, SET, a_template, claims, device, sharing
from tests.plan.world import World

PLACE = ("other", "t")
WITHOUT = [None, "", "nss", "n", "default,nss", "NS", "ns.other", "n*", "ns*", "ns other", "!ns", "'ns'"]
"""No template (None), and values of the annotation that do not name the namespace `ns`."""
WITH = ["ns", "*", "default,ns", " default , ns ", "ns,", "default,*"]


def world_with(shared_with: str | None, **levels: str) -> World:
    world = World(sharing(**levels))
    consent(world, shared_with)
    return world


def consent(world: World, shared_with: str | None) -> None:
    found = {} if shared_with is None else {PLACE: a_template(*PLACE, shared_with=shared_with)}
    world.claim_templates = found


def words_of(world: World) -> list[str]:
    complaints = (*world.plan().complaints, *world.plan_set().complaints)
    return list(dict.fromkeys(complaint.words for complaint in complaints))


@pytest.mark.parametrize("shared_with", WITHOUT)
@pytest.mark.parametrize(
    ("levels", "code", "who"),
    [
        ({"set_": "t@other"}, SET, "the set"),
        ({"set_": "t@other/"}, SET, "the set"),
        ({"group": "t@other"}, GROUP, "x"),
        ({"clique": "t@other/"}, CLIQUE, "a"),
    ],
)
def test_without_consent_no_claim_is_made(shared_with, levels, code, who) -> None:
    world = world_with(shared_with, **levels)
    world.settle()
    assert claims(world) == set()
    assert {each.code for each in (*world.plan().complaints, *world.plan_set().complaints)} == {code}
    assert words_of(world) == [
        f"ResourceClaimTemplate other/t, which resourceSharing of {who} refers to, does not exist or is not "
        "shared with namespace ns: create it, or add ns to its annotation grove.io/shared-with-namespaces"
    ], "the same words whether the template exists or not"


@pytest.mark.parametrize("shared_with", WITH)
def test_with_consent_the_claim_is_made_from_the_template(shared_with) -> None:
    world = world_with(shared_with, set_="t@other", group="t@other", clique="t@other/")
    world.settle()
    made = {"wl-all-t", "wl-0-x-all-t", "wl-0-a-0-t", "wl-0-a-1-t"}
    assert claims(world) == made
    assert all(world.api.get(KIND, name)["spec"] == device("t") for name in made)
    assert len(world.pods()) == 4
    assert words_of(world) == []


def test_consent_that_comes_later_lets_the_set_continue() -> None:
    world = world_with("default", clique="t@other/")
    world.settle()
    assert not world.pods("wl-0-a")
    consent(world, "default,ns")
    world.settle()
    assert len(world.pods("wl-0-a")) == 2
    assert words_of(world) == []


def test_withdrawn_consent_keeps_claims_and_makes_no_more() -> None:
    world = world_with("ns", clique="t@other/")
    world.settle()
    before = {name: world.api.get(KIND, name) for name in claims(world)}
    consent(world, "default")
    assert (world.plan().intents, words_of(world)) == ((), []), "nothing is needed"
    world.scale("PodClique", "wl-0-a", 3)
    world.settle()
    assert {name: world.api.get(KIND, name) for name in claims(world)} == before
    assert len(world.pods("wl-0-a")) == 2
    (words,) = words_of(world)
    assert "add ns to its annotation" in words
    consent(world, "*")
    world.settle()
    assert len(world.pods("wl-0-a")) == 3


@pytest.mark.parametrize("namespace", ["", "@ns"])
def test_a_template_beside_the_set_needs_no_consent(namespace) -> None:
    world = World(sharing(clique=f"ext{namespace}/"))
    world.claim_templates = {("ns", "ext"): a_template("ns", "ext")}
    world.settle()
    assert len(world.pods("wl-0-a")) == 2


def test_a_missing_template_beside_the_set_is_said_to_be_missing() -> None:
    world = World(sharing(clique="ext@ns/"))
    world.settle()
    (words,) = words_of(world)
    assert (
        words == "there is no ResourceClaimTemplate ns/ext, which resourceSharing of a refers to: create it"
    )


def test_what_the_annotation_means() -> None:
    assert annotations.SHARED_WITH_NAMESPACES == "grove.io/shared-with-namespaces"
    for value in WITH:
        assert annotations.shared_with({annotations.SHARED_WITH_NAMESPACES: value}, "ns"), value
    for value in filter(None, WITHOUT):
        assert not annotations.shared_with({annotations.SHARED_WITH_NAMESPACES: value}, "ns"), value
    assert not annotations.shared_with({}, "")
    assert not annotations.shared_with({annotations.SHARED_WITH_NAMESPACES: ","}, "")
