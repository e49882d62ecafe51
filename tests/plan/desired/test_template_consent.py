"""A ResourceClaimTemplate of another namespace is used only if its annotation names the set's namespace."""

from __future__ import annotations

import pytest

from grove.api.naming import annotations
from tests.plan.simulator.shared_claims import CLIQUE, GROUP, KIND, SET, a_template, claims, device, sharing
from tests.plan.simulator.simulator import Simulator

PLACE = ("other", "t")
WITHOUT = [None, "", "nss", "n", "default,nss", "NS", "ns.other", "n*", "ns*", "ns other", "!ns", "'ns'"]
"""No template (None), and values of the annotation that do not name the namespace `ns`."""
WITH = ["ns", "*", "default,ns", " default , ns ", "ns,", "default,*"]


def simulator_with(shared_with: str | None, **levels: str) -> Simulator:
    sim = Simulator(sharing(**levels))
    consent(sim, shared_with)
    return sim


def consent(sim: Simulator, shared_with: str | None) -> None:
    found = {} if shared_with is None else {PLACE: a_template(*PLACE, shared_with=shared_with)}
    sim.claim_templates = found


def messages_of(sim: Simulator) -> list[str]:
    user_errors = (*sim.plan().errors, *sim.plan_set().errors)
    return list(dict.fromkeys(user_error.message for user_error in user_errors))


@pytest.mark.parametrize("shared_with", WITHOUT)
@pytest.mark.parametrize(
    ("levels", "code", "part"),
    [
        ({"set_": "t@other"}, SET, "the set"),
        ({"set_": "t@other/"}, SET, "the set"),
        ({"group": "t@other"}, GROUP, "x"),
        ({"clique": "t@other/"}, CLIQUE, "a"),
    ],
)
def test_without_consent_no_claim_is_created(shared_with, levels, code, part) -> None:
    sim = simulator_with(shared_with, **levels)
    sim.settle()
    assert claims(sim) == set()
    assert {each.code for each in (*sim.plan().errors, *sim.plan_set().errors)} == {code}
    assert messages_of(sim) == [
        f"ResourceClaimTemplate other/t, which resourceSharing of {part} refers to, does not exist or is not "
        "shared with namespace ns: create it, or add ns to its annotation grove.io/shared-with-namespaces"
    ], "the same message whether the template exists or not"


@pytest.mark.parametrize("shared_with", WITH)
def test_with_consent_claim_is_created_from_template(shared_with) -> None:
    sim = simulator_with(shared_with, set_="t@other", group="t@other", clique="t@other/")
    sim.settle()
    created = {"wl-all-t", "wl-0-x-all-t", "wl-0-a-0-t", "wl-0-a-1-t"}
    assert claims(sim) == created
    assert all(sim.api.get(KIND, name)["spec"] == device("t") for name in created)
    assert len(sim.pods()) == 4
    assert messages_of(sim) == []


def test_later_consent_resumes_creation() -> None:
    sim = simulator_with("default", clique="t@other/")
    sim.settle()
    assert not sim.pods("wl-0-a")
    consent(sim, "default,ns")
    sim.settle()
    assert len(sim.pods("wl-0-a")) == 2
    assert messages_of(sim) == []


def test_withdrawn_consent_keeps_claims_and_creates_none() -> None:
    sim = simulator_with("ns", clique="t@other/")
    sim.settle()
    before = {name: sim.api.get(KIND, name) for name in claims(sim)}
    consent(sim, "default")
    assert (sim.plan().intents, messages_of(sim)) == ((), []), "nothing is needed"
    sim.scale("PodClique", "wl-0-a", 3)
    sim.settle()
    assert {name: sim.api.get(KIND, name) for name in claims(sim)} == before
    assert len(sim.pods("wl-0-a")) == 2
    (words,) = messages_of(sim)
    assert "add ns to its annotation" in words
    consent(sim, "*")
    sim.settle()
    assert len(sim.pods("wl-0-a")) == 3


@pytest.mark.parametrize("namespace", ["", "@ns"])
def test_template_in_same_namespace_needs_no_consent(namespace) -> None:
    sim = Simulator(sharing(clique=f"ext{namespace}/"))
    sim.claim_templates = {("ns", "ext"): a_template("ns", "ext")}
    sim.settle()
    assert len(sim.pods("wl-0-a")) == 2


def test_missing_template_in_same_namespace_reported_missing() -> None:
    sim = Simulator(sharing(clique="ext@ns/"))
    sim.settle()
    (words,) = messages_of(sim)
    assert (
        words == "there is no ResourceClaimTemplate ns/ext, which resourceSharing of a refers to: create it"
    )


def test_consent_annotation_values() -> None:
    assert annotations.SHARED_WITH_NAMESPACES == "grove.io/shared-with-namespaces"
    for value in WITH:
        assert annotations.shared_with({annotations.SHARED_WITH_NAMESPACES: value}, "ns"), value
    for value in filter(None, WITHOUT):
        assert not annotations.shared_with({annotations.SHARED_WITH_NAMESPACES: value}, "ns"), value
    assert not annotations.shared_with({}, "")
    assert not annotations.shared_with({annotations.SHARED_WITH_NAMESPACES: ","}, "")
