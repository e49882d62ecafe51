"""Topologies of the cluster: levels that are there once, and schedulers that keep one."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from grove.rules import cluster_topology
from grove.rules.model import Facts, TopologyUser
from grove.topology.nesting import Nesting
from tests.rules.builders import FACTS, in_use

LEVELS = [{"domain": "zone", "key": "example.com/zone"}, {"domain": "rack", "key": "example.com/rack"}]


def topology(levels=LEVELS, **spec):
    return {"metadata": {"name": "h100"}, "spec": {"levels": levels, **spec}}


def bound(*names):
    return [{"schedulerName": name, "topologyReference": "tree"} for name in names]


def referred(*names):
    return [{"schedulerName": name, "reference": "tree"} for name in names]


OLD_NAME = "spec.schedulerTopologyReferences"


@pytest.mark.parametrize(
    ("body", "errors"),
    [
        (topology(), []),
        (topology(schedulerTopologyBindings=bound("kai-scheduler")), []),
        (topology(schedulerReferences=referred("kai-scheduler")), []),
        (
            topology([*LEVELS, {"domain": "rack", "key": "example.com/zone"}]),
            [
                'spec.levels[2].domain: Duplicate value: "rack"',
                'spec.levels[2].key: Duplicate value: "example.com/zone"',
            ],
        ),
        (
            topology(schedulerTopologyBindings=bound("kai-scheduler", "kai-scheduler")),
            [f'{OLD_NAME}[1].schedulerName: Duplicate value: "kai-scheduler"'],
        ),
        (
            topology(
                schedulerReferences=referred("kai-scheduler"),
                schedulerTopologyBindings=bound("kai-scheduler"),
            ),
            [f'{OLD_NAME}[0].schedulerName: Duplicate value: "kai-scheduler"'],
        ),
        (
            topology(schedulerTopologyBindings=bound("slurm")),
            [
                f'{OLD_NAME}[0].schedulerName: Invalid value: "slurm": scheduler backend is not '
                "enabled in Grove",
            ],
        ),
        (
            topology(schedulerReferences=referred("default-scheduler")),
            [
                'spec.schedulerReferences[0].schedulerName: Invalid value: "default-scheduler": scheduler '
                "backend does not implement topology-aware scheduling"
            ],
        ),
        ({"spec": {}}, ["spec.levels: Required value"]),
        ({}, ["spec: Required value"]),
        (topology([1]), ["spec.levels[0]: Invalid value: 1: must be an object"]),
    ],
)
def test_what_is_refused_and_what_is_not(body, errors):
    assert list(map(str, cluster_topology.on_create(body, FACTS).errors)) == errors
    assert list(map(str, cluster_topology.on_update(topology(), body, FACTS).errors)) == errors


def test_levels_may_be_edited_though_a_scheduler_was_switched_off():
    old = topology(schedulerTopologyBindings=bound("kai-scheduler"))
    new = topology(LEVELS[:1], schedulerTopologyBindings=bound("kai-scheduler"))
    assert not cluster_topology.on_create(new, Facts()).allowed
    assert cluster_topology.on_update(old, new, Facts()).allowed


def test_levels_that_kai_would_refuse_are_told_where_kai_is_used_and_its_topology_ours():
    host = {"domain": "host", "key": "kubernetes.io/hostname"}
    body = topology([host, *LEVELS])
    with_kai, without = Facts(backends=in_use("kai-scheduler")), Facts()
    why = "KAI requires kubernetes.io/hostname to be the last level"
    told = cluster_topology.on_create(body, with_kai)
    assert told.allowed
    assert told.warnings == (f"spec.levels: no topology will be made for kai-scheduler: {why}",)
    assert cluster_topology.on_update(topology(), body, with_kai).warnings == told.warnings
    elsewhere = topology([host, *LEVELS], schedulerReferences=referred("kai-scheduler"))
    for fine, facts in ((topology([*LEVELS, host]), with_kai), (body, without), (elsewhere, with_kai)):
        assert cluster_topology.on_create(fine, facts).warnings == ()


ZONE, RACK = "zone", "rack"
USERS = (
    TopologyUser("ns/b", frozenset({RACK})),
    TopologyUser("ns/a", frozenset({ZONE, RACK})),
    TopologyUser("ns/c", frozenset({"gone-already"})),
)
STAYS = "its pods stay, new ones are placed without"
NO_RACK = (f"PodCliqueSet ns/a loses rack: {STAYS}", f"PodCliqueSet ns/b loses rack: {STAYS}")
ALL = (f"PodCliqueSet ns/a loses rack, zone: {STAYS}", NO_RACK[1])
BINDING = {**topology(), "kind": "ClusterTopologyBinding"}


def used(other_kind_domains=None):
    return replace(FACTS, users=USERS, other_kind_domains=other_kind_domains)


@pytest.mark.parametrize(
    ("old", "new", "other_kind_domains", "warnings"),
    [
        (topology(), topology(), None, ()),
        (topology(), topology(LEVELS[::-1]), None, ()),
        (topology(), topology([LEVELS[0], {"domain": "rack", "key": "other"}]), None, ()),
        (topology(), topology(LEVELS[:1]), None, NO_RACK),
        (topology(), topology([LEVELS[0], {"domain": "row", "key": "row"}]), None, NO_RACK),
        (topology(), None, None, ALL),
        # Of two kinds with one name the ClusterTopology counts, and the other one is there when it goes.
        (topology(), None, (ZONE,), NO_RACK),
        (topology(), None, (ZONE, RACK), ()),
        (BINDING, None, (ZONE, RACK), ()),
        (BINDING, None, None, ALL),
        (None, topology(LEVELS[:1]), (ZONE, RACK), NO_RACK),
        (None, BINDING, (ZONE,), ()),
        (None, topology(), None, ()),
    ],
)
def test_who_loses_a_level_is_told_and_nothing_is_held_up(old, new, other_kind_domains, warnings):
    facts = used(other_kind_domains)
    if new is None:
        verdict = cluster_topology.on_delete(old, facts)
    elif old is None:
        verdict = cluster_topology.on_create(new, facts)
    else:
        verdict = cluster_topology.on_update(old, new, facts)
    assert (verdict.message, verdict.warnings) == ("", warnings)


def test_who_is_upside_down_by_a_change_of_order_is_told():
    inside = Nesting("PodCliqueSet", ZONE, "PodClique 'a'", RACK)
    users = TopologyUser("ns/a", frozenset({ZONE, RACK}), (inside,)), TopologyUser("ns/b", frozenset({ZONE}))
    facts = replace(FACTS, users=users)
    warnings = cluster_topology.on_update(topology(), topology(LEVELS[::-1]), facts).warnings
    assert warnings == (
        "PodCliqueSet ns/a is upside down in these levels: PodCliqueSet asks for zone, and PodClique 'a' in "
        "it for rack, which is the broader of the two",
    )
    assert cluster_topology.on_update(topology(LEVELS[::-1]), topology(LEVELS[::-1]), facts).warnings == ()
    many = tuple(TopologyUser(f"ns/w{n:02}", frozenset(), (inside,)) for n in range(16))
    warnings = cluster_topology.on_create(topology(LEVELS[::-1]), replace(FACTS, users=many)).warnings
    assert (len(warnings), warnings[-1]) == (16, "and so are 1 more PodCliqueSets")


def test_many_losers_are_told_in_few_lines():
    many = replace(FACTS, users=tuple(TopologyUser(f"ns/w{n:02}", frozenset({RACK})) for n in range(40)))
    warnings = cluster_topology.on_delete(topology(), many).warnings
    assert len(warnings) == 16
    assert warnings[-1] == "and so do 25 more PodCliqueSets"
    assert cluster_topology.on_delete({"spec": 1}, many).warnings == ()
