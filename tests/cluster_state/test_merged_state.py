"""States that were read in different namespaces, as one."""

from __future__ import annotations

import pytest
from msgspec import Raw

from grove.cluster_state.model import ClusterState, KindState
from grove.cluster_state.reading import merged_state
from grove.kube.client.resource import NODES, PODS

A = KindState(PODS, (Raw(b"1"),), namespace="a", undecodable=("a/x",))
B = KindState(PODS, (Raw(b"2"), Raw(b"3")), namespace="b")
DENIED = KindState(PODS, problem="no right to list pods in namespace c (403 Forbidden)")
ABSENT = KindState(PODS, served=False)


def merged(*found: KindState) -> KindState:
    states = [ClusterState({each.resource: each}, 7.0, "v1.37.1", "here") for each in found]
    state = merged_state(states)
    assert (state.taken_at, state.server_version, state.source) == (7.0, "v1.37.1", "here")
    return state.kind(PODS)


def test_objects_of_all_namespaces_are_there() -> None:
    found = merged(A, B)
    assert [bytes(each) for each in found.items] == [b"1", b"2", b"3"]
    assert (found.namespace, found.undecodable) == ("a, b", ("a/x",))


@pytest.mark.parametrize("order", [(A, DENIED), (DENIED, A)])
def test_kind_that_one_namespace_denies_is_known_in_the_others(order: tuple[KindState, ...]) -> None:
    assert merged(*order) == A


@pytest.mark.parametrize("unread", [DENIED, ABSENT])
def test_kind_that_cannot_be_read_stays_unread(unread: KindState) -> None:
    assert merged(unread, unread) == unread


def test_kinds_of_each_state_are_kept() -> None:
    nodes = KindState(NODES, (Raw(b"1"),))
    state = merged_state([ClusterState({NODES: nodes}), ClusterState({PODS: A})])
    assert state.kinds == {NODES: nodes, PODS: A}
