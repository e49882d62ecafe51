"""Names of objects. Clients depend on them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grove.api.naming import names

GROUP = names.group("inference", 1, "prefill")


@pytest.mark.parametrize(
    ("built", "expected"),
    [
        (names.clique("inference", 0, "router"), "inference-0-router"),
        (GROUP, "inference-1-prefill"),
        (names.member_clique(GROUP, 2, "leader"), "inference-1-prefill-2-leader"),
        (names.group_replica(GROUP, 2), "inference-1-prefill-2"),
        (names.base_gang("inference", 0), "inference-0"),
        (names.scaled_gang(GROUP, group_index=3, min_available=3), "inference-1-prefill-0"),
        (names.scaled_gang(GROUP, group_index=5, min_available=3), "inference-1-prefill-2"),
        (names.service("inference", 0), "inference-0"),
        (names.service_host("inference", 0, "ns"), "inference-0.ns.svc.cluster.local"),
        (names.pod_host("inference-0-router", 4), "inference-0-router-4"),
        (names.service_account("inference"), "inference"),
        (names.role("inference"), "grove.io:pcs:inference"),
        (names.token_secret("inference"), "inference-ic-sat"),
        (names.claim_for_all_replicas("inference", "gpu"), "inference-all-gpu"),
        (names.claim_for_replica("inference-0-router", 3, "gpu"), "inference-0-router-3-gpu"),
        (names.compute_domain("inference", 0), "inference-0"),
        (names.grouped_compute_domain("inference", 0, "a"), "inference-0-a"),
        (names.user_names_length(("inference", "prefill", "leader")), 22),
    ],
)
def test_object_names(built, expected):
    assert built == expected


def test_pod_name_is_deterministic():
    assert names.pod("inference-0-router", "uid", 3) == names.pod("inference-0-router", "uid", 3)


def test_pod_name_is_stable_across_versions():
    """A version that names pods differently would replace all of them."""
    assert names.pod("inference-0-router", "0f8fad5b-d9cb-469f-a165-70867728950e", 0) == PINNED


PINNED = "inference-0-router-zq98vkkb"


@given(uid=st.uuids().map(str), index=st.integers(0, 10_000))
def test_pod_name_is_clique_name_and_suffix(uid, index):
    clique, _, suffix = names.pod("inference-0-router", uid, index).rpartition("-")
    assert clique == "inference-0-router"
    assert len(suffix) >= 5
    assert set(suffix) <= set("abcdefghijklmnopqrstuvwxyz0123456789")
    assert names.is_pod_name(f"{clique}-{suffix}", clique)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("set-0-a-x7k2w", True),
        ("set-0-a", False),
        ("set-0-a-x7k", False),
        ("set-0-a-debug", False),
        ("set-0-b-x7k2w", False),
        ("set-0-a-b-x7k2w", False),
        ("", False),
    ],
)
def test_is_pod_name(name, expected):
    assert names.is_pod_name(name, "set-0-a") is expected


@pytest.mark.parametrize(("host", "index"), [("set-0-a-12", 12), ("set-0-a", None), ("7", 7), ("", None)])
def test_index_is_parsed_from_hostname(host, index):
    assert names.index_of_host(host) == index


def test_pod_names_of_large_clique_never_repeat():
    used = set()
    for index in range(1000):
        name = ""
        for _ in range(20):
            name = names.pod("clique", "uid", index, predecessor=name)
            used.add(name)
    assert len(used) == 20_000


def test_recreated_clique_gets_other_pod_names():
    assert names.pod("clique", "uid-1", 0) != names.pod("clique", "uid-2", 0)


def test_longest_names_fit_a_hostname():
    chosen = "s" * 15, "g" * 15, "c" * 15
    assert names.user_names_length(chosen) == names.MAX_USER_NAMES_LENGTH
    member = names.member_clique(names.group(chosen[0], 9, chosen[1]), 9, chosen[2])
    assert len(names.pod(member, "uid", 0)) <= 63
    assert len(names.pod_host(member, 9999)) <= 63
