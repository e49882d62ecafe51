"""Validation of ClusterTopologies and ClusterTopologyBindings, and warnings about sets that use them."""

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
NO_SCHEDULER = "name the scheduler that has the topology"
NO_TOPOLOGY = "name the topology of the scheduler, or remove the entry: the operator then creates one"
LONG = f"example.com/{'x' * 64}"


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
        (
            topology(
                schedulerReferences=[{"schedulerName": "", "reference": ""}],
                schedulerTopologyBindings=[{"schedulerName": "kai-scheduler", "topologyReference": ""}],
            ),
            [
                f"spec.schedulerReferences[0].schedulerName: Required value: {NO_SCHEDULER}",
                f"spec.schedulerReferences[0].reference: Required value: {NO_TOPOLOGY}",
                f"{OLD_NAME}[0].topologyReference: Required value: {NO_TOPOLOGY}",
            ],
        ),
        (
            topology([{"domain": "zone", "key": LONG}]),
            [f'spec.levels[0].key: Invalid value: "{LONG}": name part must be no more than 63 characters'],
        ),
        (topology([{"domain": "zone", "key": LONG[:-1]}]), []),
        ({"spec": {}}, ["spec.levels: Required value"]),
        ({}, ["spec: Required value"]),
        (topology([1]), ["spec.levels[0]: Invalid value: 1: must be an object"]),
    ],
)
def test_topology_errors_on_create_and_update(body, errors):
    assert list(map(str, cluster_topology.on_create(body, FACTS).errors)) == errors
    assert list(map(str, cluster_topology.on_update(topology(), body, FACTS).errors)) == errors


def test_levels_are_editable_with_disabled_scheduler():
    old = topology(schedulerTopologyBindings=bound("kai-scheduler"))
    new = topology(LEVELS[:1], schedulerTopologyBindings=bound("kai-scheduler"))
    assert not cluster_topology.on_create(new, Facts()).allowed
    assert cluster_topology.on_update(old, new, Facts()).allowed


def test_levels_invalid_for_kai_are_warned_of():
    """Only if KAI is enabled and the operator creates its Topology."""
    host = {"domain": "host", "key": "kubernetes.io/hostname"}
    body = topology([host, *LEVELS])
    with_kai, without = Facts(backends=in_use("kai-scheduler")), Facts()
    why = "KAI requires kubernetes.io/hostname to be the last level"
    verdict = cluster_topology.on_create(body, with_kai)
    assert verdict.allowed
    assert verdict.warnings == (f"spec.levels: no Topology is created for kai-scheduler: {why}",)
    assert cluster_topology.on_update(topology(), body, with_kai).warnings == verdict.warnings
    external = topology([host, *LEVELS], schedulerReferences=referred("kai-scheduler"))
    for valid, facts in ((topology([*LEVELS, host]), with_kai), (body, without), (external, with_kai)):
        assert cluster_topology.on_create(valid, facts).warnings == ()


ZONE, RACK = "zone", "rack"
USERS = (
    TopologyUser("ns/b", frozenset({RACK})),
    TopologyUser("ns/a", frozenset({ZONE, RACK})),
    TopologyUser("ns/c", frozenset({"missing-before"})),
)
STAYS = "its pods stay, new pods are placed without this constraint"
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
        # A ClusterTopology hides a binding of the same name, which takes effect when the former is deleted.
        (topology(), None, (ZONE,), NO_RACK),
        (topology(), None, (ZONE, RACK), ()),
        (BINDING, None, (ZONE, RACK), ()),
        (BINDING, None, None, ALL),
        (None, topology(LEVELS[:1]), (ZONE, RACK), NO_RACK),
        (None, BINDING, (ZONE,), ()),
        (None, topology(), None, ()),
    ],
)
def test_removed_level_warns_of_sets_that_use_it(old, new, other_kind_domains, warnings):
    facts = used(other_kind_domains)
    if new is None:
        verdict = cluster_topology.on_delete(old, facts)
    elif old is None:
        verdict = cluster_topology.on_create(new, facts)
    else:
        verdict = cluster_topology.on_update(old, new, facts)
    assert (verdict.message, verdict.warnings) == ("", warnings)


def test_reordered_levels_warn_of_contradicted_sets():
    inside = Nesting("PodCliqueSet", ZONE, "PodClique 'a'", RACK)
    users = TopologyUser("ns/a", frozenset({ZONE, RACK}), (inside,)), TopologyUser("ns/b", frozenset({ZONE}))
    facts = replace(FACTS, users=users)
    warnings = cluster_topology.on_update(topology(), topology(LEVELS[::-1]), facts).warnings
    assert warnings == (
        "PodCliqueSet ns/a has constraints that contradict the order of these levels: PodCliqueSet asks for "
        "zone, and PodClique 'a' in it for rack, which is the broader of the two",
    )
    assert cluster_topology.on_update(topology(LEVELS[::-1]), topology(LEVELS[::-1]), facts).warnings == ()
    many = tuple(TopologyUser(f"ns/w{n:02}", frozenset(), (inside,)) for n in range(16))
    warnings = cluster_topology.on_create(topology(LEVELS[::-1]), replace(FACTS, users=many)).warnings
    last = "1 more PodCliqueSets have constraints that contradict the order of these levels"
    assert (len(warnings), warnings[-1]) == (16, last)


def test_warnings_about_many_sets_are_summarised():
    many = replace(FACTS, users=tuple(TopologyUser(f"ns/w{n:02}", frozenset({RACK})) for n in range(40)))
    warnings = cluster_topology.on_delete(topology(), many).warnings
    assert len(warnings) == 16
    assert warnings[-1] == "25 more PodCliqueSets lose topology domains"
    assert cluster_topology.on_delete({"spec": 1}, many).warnings == ()


def test_label_that_no_node_has_is_a_warning():
    body = topology()
    key, domain = body["spec"]["levels"][1]["key"], body["spec"]["levels"][1]["domain"]
    assert cluster_topology.level_keys(body)[1] == key
    assert cluster_topology.level_keys({"spec": 1}) == ()
    facts = replace(FACTS, unused_labels=frozenset({key, "unrelated"}))
    expected = (
        f"spec.levels[1].key: no node has the label {key}: gangs that require {domain} wait until nodes have "
        "it",
    )
    assert cluster_topology.on_create(body, facts).warnings == expected
    assert cluster_topology.on_update(body, body, facts).warnings == expected
    assert cluster_topology.on_create(body, FACTS).warnings == ()
