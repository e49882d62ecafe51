"""Members of a clique: replacement, scale-in by every criterion, adoption, names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from grove.api.naming import names
from grove.plan.members import membership as module
from grove.plan.members import pod_state
from grove.plan.members.membership import Membership, ObservedMembers, decide_members
from tests.plan.builders import a_pod

NOW = 1_800_000_000.0


def observed_members(
    *pods, references=None, deleted_pods=(), strangers=(), gang_version="gang/1"
) -> ObservedMembers:
    own = [pod.metadata.name for pod in pods]
    return ObservedMembers(
        clique="c",
        uid="uid-c",
        gang_version=gang_version,
        references=tuple(own if references is None else references),
        pods=tuple(pods),
        names=frozenset(own) | frozenset(strangers),
        deleted_pods=frozenset(deleted_pods),
        template_hash="new",
    )


def indices(membership: Membership) -> dict[str, int]:
    return {member.name: member.index for member in membership.members}


def to_delete(membership: Membership) -> list[str]:
    return [pod.metadata.name for pod in membership.to_delete]


def test_new_clique_gets_indices_from_0_and_own_names():
    members = decide_members(observed_members(gang_version=""), 3, NOW).members
    assert [member.index for member in members] == [0, 1, 2]
    assert [member.name for member in members] == [names.pod("c", "uid-c", index) for index in range(3)]
    assert all(member.pod is None for member in members)


def test_slot_without_created_pod_keeps_its_name():
    membership = decide_members(observed_members(a_pod("p", 0), references=["p", "q"]), 2, NOW)
    assert indices(membership) == {"p": 0, "q": 1}
    assert [member.name for member in membership.missing] == ["q"]


@pytest.mark.parametrize(
    ("observed", "why"),
    [
        (
            observed_members(a_pod("p", 0), a_pod("q", 1, terminating=True), a_pod("r", 2)),
            "it is terminating",
        ),
        (
            observed_members(a_pod("p", 0), a_pod("r", 2), references="pqr", deleted_pods=["q"]),
            "its deletion was observed",
        ),
        (
            observed_members(a_pod("p", 0), a_pod("r", 2), references="pqr", strangers=["q"]),
            "another pod has its name",
        ),
        (observed_members(a_pod("p", 0), a_pod("q", 1, phase="Failed"), a_pod("r", 2)), "it has failed"),
        (observed_members(a_pod("p", 0), a_pod("q", 1, phase="Succeeded"), a_pod("r", 2)), "it has ended"),
        (
            observed_members(a_pod("p", 0), a_pod("q", 2, created="2026-02-01T00:00:00Z"), a_pod("r", 2)),
            "its index is used twice",
        ),
        (observed_members(a_pod("p", 0), a_pod("q", None), a_pod("r", 2)), "it has no index"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_lost_pod_is_replaced_at_lowest_index_with_new_name(observed, why):
    membership = decide_members(observed, 3, NOW)
    assert indices(membership) == {"p": 0, names.pod("c", "uid-c", 1, "q"): 1, "r": 2}, why


def test_every_replacement_takes_the_lowest_free_index():
    gone = decide_members(
        observed_members(a_pod("r", 2), references=["p", "q", "r"], deleted_pods=["p", "q"]), 3, NOW
    )
    assert [member.index for member in gone.members] == [0, 1, 2]
    assert gone.references[2] == "r"


KEEP_PRIORITY = [
    ("has no pod yet", None, a_pod("p")),
    ("has failed and waits for its back-off", a_pod("p", phase="Failed", node="n"), a_pod("p")),
    ("has no node", a_pod("p", phase="Running", ready=True), a_pod("p", node="n")),
    ("is pending", a_pod("p", node="n", ready=True), a_pod("p", node="n", phase="Unknown")),
    ("is unknown", a_pod("p", node="n", phase="Unknown", ready=True), a_pod("p", node="n", phase="Running")),
    (
        "is not ready",
        a_pod("p", node="n", phase="Running"),
        a_pod("p", node="n", phase="Running", ready=True, hash_="old"),
    ),
    (
        "is of an old template",
        a_pod("p", node="n", phase="Running", ready=True, hash_="old"),
        a_pod("p", node="n", phase="Running", ready=True, created="2026-02-01T00:00:00Z"),
    ),
    ("is younger", a_pod("p", created="2026-01-01T00:00:01Z"), a_pod("p")),
]


@pytest.mark.parametrize(
    ("deleted", "stays"), [row[1:] for row in KEEP_PRIORITY], ids=[row[0] for row in KEEP_PRIORITY]
)
@pytest.mark.parametrize("deleted_first", [True, False], ids=["first", "second"])
def test_scale_in_deletes_lowest_keep_priority_first(deleted, stays, deleted_first):
    """Spec 4.5, one row per criterion: each outranks all later ones, in any order of slots."""
    slots = (
        [("deleted", deleted), ("stays", stays)]
        if deleted_first
        else [("stays", stays), ("deleted", deleted)]
    )
    pods = [_renamed(pod, name, index) for index, (name, pod) in enumerate(slots) if pod is not None]
    observed = observed_members(*pods, references=[name for name, _ in slots])
    membership = decide_members(observed, 1, 0.0)
    assert membership.references == ("stays",)
    assert to_delete(membership) == (["deleted"] if deleted is not None else [])
    assert membership.scales_in


def _renamed(pod, name, index):
    return a_pod(
        name,
        index,
        phase=pod.status.phase,
        node=pod.spec.node_name,
        ready=bool(pod.status.conditions),
        hash_=pod.metadata.labels["grove.io/pod-template-hash"],
        created=pod.metadata.creation_timestamp,
    )


def test_scale_in_ignores_index_and_survivors_keep_theirs():
    pods = [a_pod("p", 0), a_pod("q", 1, node="n"), a_pod("r", 2, node="n")]
    membership = decide_members(observed_members(*pods), 2, NOW)
    assert indices(membership) == {"q": 1, "r": 2}
    grown = decide_members(observed_members(*pods[1:]), 3, NOW)
    assert [member.index for member in grown.members] == [0, 1, 2]


def test_scale_to_0_deletes_all_pods():
    membership = decide_members(observed_members(a_pod("p", 0, node="n", ready=True), a_pod("q", 1)), 0, NOW)
    assert membership.references == ()
    assert to_delete(membership) == ["p", "q"]


def test_unreferenced_pod_is_adopted_if_there_is_room():
    membership = decide_members(observed_members(a_pod("p", 0), a_pod("q", 1), references=["p"]), 2, NOW)
    assert indices(membership) == {"p": 0, "q": 1}
    assert not to_delete(membership)
    assert not membership.scales_in


@pytest.mark.parametrize(
    ("pod", "why"),
    [
        (a_pod("q", 1), "there is no room"),
        (a_pod("q", 0), "its index is in use"),
        (a_pod("q", 1, phase="Failed"), "it has ended"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_unreferenced_pod_is_deleted_without_room(pod, why):
    count = 1 if why == "there is no room" else 2
    membership = decide_members(observed_members(a_pod("p", 0), pod, references=["p"]), count, NOW)
    assert to_delete(membership) == ["q"], why
    assert membership.scales_in == (why != "it has ended")
    assert "q" not in membership.references


def test_used_or_deleted_name_is_not_given_again():
    first = names.pod("c", "uid-c", 0, "gang/1")
    second = names.pod("c", "uid-c", 0, first)
    third = names.pod("c", "uid-c", 0, second)
    assert decide_members(observed_members(deleted_pods=[first], strangers=[second]), 1, NOW).references == (
        third,
    )


def test_later_slots_get_names_different_from_earlier():
    before, after = (
        decide_members(observed_members(gang_version=f"gang/{number}"), 2, NOW).references
        for number in (1, 2)
    )
    assert not set(before) & set(after)


def test_duplicate_reference_is_one_slot():
    membership = decide_members(observed_members(a_pod("p", 0), references=["p", "p"]), 1, NOW)
    assert indices(membership) == {"p": 0}
    assert not to_delete(membership)


def test_unchanged_clique_deletes_and_confirms_nothing():
    membership = decide_members(observed_members(a_pod("p", 0), a_pod("q", 1)), 2, NOW)
    assert indices(membership) == {"p": 0, "q": 1}
    assert (to_delete(membership), membership.missing, membership.scales_in) == ([], (), False)


pods = st.builds(
    a_pod,
    st.sampled_from("pqrs"),
    st.sampled_from([0, 1, 2, 3, None]),
    phase=st.sampled_from(["Pending", "Running", "Failed"]),
    node=st.sampled_from(["", "n"]),
    ready=st.booleans(),
    hash_=st.sampled_from(["old", "new"]),
    created=st.sampled_from(["2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"]),
    terminating=st.booleans(),
)
rolls = st.builds(
    lambda pods, references, deleted_pods: observed_members(
        *pods, references=references, deleted_pods=deleted_pods
    ),
    st.lists(pods, max_size=4, unique_by=lambda pod: pod.metadata.name),
    st.lists(st.sampled_from("pqrst"), max_size=5),
    st.sets(st.sampled_from("pqrst")),
)


@given(observed=rolls, count=st.integers(0, 5))
def test_every_member_has_name_index_and_at_most_one_pod(observed, count):
    membership = decide_members(observed, count, NOW)
    members = membership.members
    assert len(members) == count
    assert [member.index for member in members] == sorted({member.index for member in members})
    assert len(set(membership.references)) == count
    assert not set(to_delete(membership)) & set(membership.references)
    assert not observed.deleted_pods & {member.name for member in membership.missing}
    living = {pod.metadata.name for pod in observed.pods if pod_state.alive(pod)}
    assert living <= set(membership.references) | set(to_delete(membership))


@given(observed=rolls, count=st.integers(0, 5), chance=st.randoms())
def test_members_do_not_depend_on_order_of_pods(observed, count, chance):
    mixed = replace(observed, pods=tuple(chance.sample(observed.pods, len(observed.pods))))
    first, second = decide_members(observed, count, NOW), decide_members(mixed, count, NOW)
    assert first.members == second.members
    assert set(to_delete(first)) == set(to_delete(second))


@given(observed=rolls, count=st.integers(0, 5))
def test_decision_is_stable_after_execution(observed, count):
    """After the gang is written, pods are deleted and created, the members do not change."""
    first = decide_members(observed, count, NOW)
    created = [a_pod(member.name, member.index) for member in first.missing]
    stayed = [member.pod for member in first.members if member.pod is not None]
    settled = observed_members(*stayed, *created, references=first.references)
    second = decide_members(settled, count, NOW)
    assert second.references == first.references
    assert (second.to_delete, second.missing, second.scales_in) == ((), (), False)
    by_name = {pod.metadata.name: pod for pod in settled.pods}
    assert module._unchanged(settled, by_name, count) == module._reassigned(settled, by_name, count, NOW)
