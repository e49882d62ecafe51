"""Validation of topology constraints of sets, groups and cliques, and of `grove.io/mnnvl-group`."""

from __future__ import annotations

import msgspec
import pytest

from grove.api.configuration.types import Network
from grove.rules.podcliqueset import validation
from tests.rules.builders import FACTS, GONE, changed, workload
from tests.rules.messages import ON_KAI, C, G, T

S = f"{T}.topologyConstraint"
CT = f"{C}.topologyConstraint"
GT = f"{G}.topologyConstraint"
MEMBER = f"{T}.cliques[1].topologyConstraint"
KEY = "grove.io/mnnvl-group"
DIFFERENT = (
    "all topologyConstraint.topologyName values within a PodCliqueSet must match in the current "
    "implementation"
)
NAMELESS = "topologyName is required when topologyConstraint is set and cannot be inherited"
LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start "
    "and end with an alphanumeric character (e.g. 'my-name', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
DISABLED = (
    'MNNVL is not enabled in the operator\'s configuration: set network.autoMNNVLEnabled, or use "none"'
)


def packs(required="", preferred="", name="", domain=""):
    pack = {key: value for key, value in (("required", required), ("preferred", preferred)) if value}
    fields = {"topologyName": name, "packDomain": domain, "pack": pack}
    return {key: value for key, value in fields.items() if value}


def unknown(domain):
    return f"topology domain '{domain}' does not exist in cluster topology [zone, block, rack, host]"


REFUSALS = [
    ({CT: packs("rack")}, [f"{CT}.topologyName: Required value: {NAMELESS}"]),
    (
        {S: packs("rack", name="h100"), GT: packs("rack", name="gb200")},
        [
            f'{S}.topologyName: Invalid value: "h100": {DIFFERENT}',
            f'{GT}.topologyName: Invalid value: "gb200": {DIFFERENT}',
        ],
    ),
    (
        {CT: packs("rack", name="gb200"), GT: packs("rack", name="h100")},
        [
            f'{GT}.topologyName: Invalid value: "h100": {DIFFERENT}',
            f'{CT}.topologyName: Invalid value: "gb200": {DIFFERENT}',
        ],
    ),
    (
        {S: packs("rack", name="mi300")},
        [
            f'{S}.topologyName: Invalid value: "mi300": ClusterTopology or ClusterTopologyBinding "mi300" '
            "not found"
        ],
    ),
    (
        {
            S: packs(domain="sled", name="h100"),
            GT: packs("tray"),
            CT: packs("rack", "numa"),
        },
        [
            f'{S}.packDomain: Invalid value: "sled": {unknown("sled")}',
            f'{GT}.pack.required: Invalid value: "tray": {unknown("tray")}',
            f'{CT}.pack.preferred: Invalid value: "numa": {unknown("numa")}',
        ],
    ),
    (
        {S: packs("host", name="h100"), CT: packs("rack")},
        [
            f"{S}: Invalid value: \"host\": PodCliqueSet topology constraint domain 'host' is narrower than "
            "PodClique 'router' topology constraint domain 'rack'"
        ],
    ),
    (
        {S: packs(name="h100"), GT: packs(domain="rack"), MEMBER: packs(domain="zone")},
        [
            f"{GT}: Invalid value: \"rack\": PodCliqueScalingGroup 'engine' topology constraint domain "
            "'rack' is narrower than PodClique 'prefill' topology constraint domain 'zone'"
        ],
    ),
    (
        {S: packs(preferred="rack", name="h100"), GT: packs(preferred="block")},
        [
            f"{S}.pack.preferred: Invalid value: \"rack\": PodCliqueSet topology constraint domain 'rack' is "
            "narrower than PodCliqueScalingGroup 'engine' topology constraint domain 'block'"
        ],
    ),
]
REFUSED = [({**ON_KAI, **changes}, errors) for changes, errors in REFUSALS]


@pytest.mark.parametrize(("changes", "errors"), REFUSED)
def test_invalid_constraint_is_refused(changes, errors):
    assert list(map(str, validation.on_create(changed(workload(), changes), FACTS).errors)) == errors


@pytest.mark.parametrize(
    "changes",
    [
        {S: packs("block", name="h100"), GT: packs("rack"), MEMBER: packs("host"), CT: packs(domain="block")},
        {S: packs(name="h100"), CT: packs(domain="rack")},
        {S: packs("rack", "host", name="h100"), CT: packs("rack", name="h100")},
        {GT: packs("rack", name="h100"), MEMBER: packs("host")},
        {S: packs("rack", name="h100"), CT: packs(preferred="zone")},
    ],
)
def test_valid_constraints_are_accepted(changes):
    verdict = validation.on_create(changed(workload(), {**ON_KAI, **changes}), FACTS)
    assert (verdict.message, verdict.warnings) == ("", ())


def test_constraints_are_refused_if_the_feature_is_disabled():
    off = msgspec.structs.replace(FACTS, topology_aware=False)
    body = changed(workload(), {S: packs(name="h100"), CT: packs("rack")})
    why = (
        "topology constraints are not allowed when Topology Aware Scheduling is disabled: remove the "
        "constraint, or set topologyAwareScheduling.enabled in the operator's configuration"
    )
    assert list(map(str, validation.on_create(body, off).errors)) == [
        f'{S}: Invalid value: {{"topologyName":"h100"}}: {why}',
        f'{CT}: Invalid value: {{"pack":{{"required":"rack"}}}}: {why}',
    ]
    assert validation.on_update(body, changed(body, {"spec.replicas": 2}), off).allowed


def test_preferred_broader_than_required_is_warned_of():
    body = changed(workload(), {**ON_KAI, S: packs("rack", "zone", name="h100")})
    assert validation.on_create(body, FACTS).warnings == (
        f"{S}.pack.preferred is coarser than {S}.pack.required and is redundant",
    )


def test_required_label_that_no_node_has_is_warned_of():
    body = changed(workload(), {**ON_KAI, S: packs("rack", "host", name="h100"), CT: packs("host")})
    facts = msgspec.structs.replace(FACTS, unlabelled={"h100": {"rack": "example.com/rack"}, "gb200": {}})
    assert validation.on_create(body, facts).warnings == (
        f"{S}: no node has the label example.com/rack of the required domain rack: pods wait until nodes "
        "have it",
    )
    preferred = changed(workload(), {**ON_KAI, S: packs(preferred="rack", name="h100")})
    assert validation.on_create(preferred, facts).warnings == ()


def test_topologies_named_lists_all_names_of_the_set():
    body = changed(workload(), {S: packs("rack", name="a"), CT: packs("rack", name="b"), GT: packs("rack")})
    assert validation.topologies_named(body) == {"a", "b"}
    assert validation.topologies_named(workload()) == frozenset()
    assert validation.topologies_named({"spec": 1}) == frozenset()


NAMED = {S: packs("block", name="h100"), GT: packs(domain="rack", preferred="host")}
CHANGES = [
    (
        {S: packs("block", name="gb200")},
        [f'{S}.topologyName: Forbidden: topologyName cannot be changed from "h100" to "gb200"'],
    ),
    (
        {S: packs("rack", name="h100")},
        [
            f"{S}: Forbidden: PodCliqueSet topology constraint cannot be changed from required=block "
            "preferred= to required=rack preferred="
        ],
    ),
    (
        {GT: packs("rack", name="h100")},
        [
            f'{GT}.topologyName: Forbidden: topologyName cannot be changed from "" to "h100"',
            f"{GT}: Forbidden: PodCliqueScalingGroup 'engine' topology constraint migration can only move "
            "packDomain to pack.required without changing anything else: it was required=rack preferred=host "
            "and would be required=rack preferred=",
        ],
    ),
    (
        {GT: GONE},
        [
            f"{GT}: Forbidden: PodCliqueScalingGroup 'engine' topology constraint cannot be removed after "
            "creation"
        ],
    ),
    (
        {CT: packs("rack")},
        [f"{CT}: Forbidden: PodClique 'router' topology constraint cannot be added after creation"],
    ),
    (
        {GT: packs("host", "host")},
        [
            f"{GT}: Forbidden: PodCliqueScalingGroup 'engine' topology constraint migration can only move "
            "packDomain to pack.required without changing anything else: it was required=rack preferred=host "
            "and would be required=host preferred=host"
        ],
    ),
    (
        {f"{S}.topologyName": GONE},
        [f'{S}.topologyName: Forbidden: topologyName cannot be changed from "h100" to ""'],
    ),
    (
        {S: GONE},
        [f"{S}: Forbidden: PodCliqueSet topology constraint cannot be removed after creation"],
    ),
    ({GT: packs("rack", "host")}, []),
    ({S: packs(domain="block", name="h100")}, []),
    ({"spec.replicas": 4}, []),
]


@pytest.mark.parametrize(("changes", "errors"), CHANGES)
def test_constraint_changes_are_refused_but_for_migration(changes, errors):
    """The verdict does not depend on whether the topology still exists."""
    old = changed(workload(), NAMED)
    without_topologies = msgspec.structs.replace(FACTS, topologies={})
    for facts in (FACTS, without_topologies):
        assert list(map(str, validation.on_update(old, changed(old, changes), facts).errors)) == errors


def test_renamed_clique_with_constraint_gives_one_error():
    old = changed(workload(), NAMED)
    new = changed(old, {f"{C}.name": "proxy", CT: packs("rack")})
    (error,) = validation.on_update(old, new, FACTS).errors
    assert error.path == f"{T}.cliques.name"


@pytest.mark.parametrize(
    ("name", "errors"),
    [
        ("h100", []),
        (
            "mi300",
            [
                f'{S}.topologyName: Invalid value: "mi300": ClusterTopology or ClusterTopologyBinding '
                '"mi300" not found'
            ],
        ),
    ],
)
def test_stored_set_without_topology_name_may_get_one(name, errors):
    old = changed(workload(), {S: packs(domain="rack")})
    new = changed(old, {f"{S}.topologyName": name})
    assert list(map(str, validation.on_update(old, new, FACTS).errors)) == errors
    assert validation.on_update(old, changed(old, {"spec.replicas": 4}), FACTS).allowed


FOUND = 'ClusterTopology or ClusterTopologyBinding "mi300" not found'
REPAIRS = [
    ({CT: packs(domain="rack")}, {S: packs(name="h100")}, []),
    ({CT: packs("rack")}, {S: packs(name="h100"), CT: packs("rack", name="h100")}, []),
    ({GT: packs(domain="rack")}, {S: packs(name="h100"), GT: packs("rack")}, []),
    ({CT: packs("rack")}, {S: packs(name="mi300")}, [f'{S}.topologyName: Invalid value: "mi300": {FOUND}']),
    (
        {CT: packs("rack")},
        {S: packs(name="h100"), CT: packs("rack", name="gb200")},
        [
            f'{S}.topologyName: Invalid value: "h100": {DIFFERENT}',
            f'{CT}.topologyName: Invalid value: "gb200": {DIFFERENT}',
        ],
    ),
    (
        {CT: packs("rack")},
        {S: packs("block", name="h100")},
        [f"{S}: Forbidden: PodCliqueSet topology constraint cannot be added after creation"],
    ),
    (
        {CT: packs("rack", name="h100")},
        {S: packs(name="h100")},
        [f"{S}: Forbidden: PodCliqueSet topology constraint cannot be added after creation"],
    ),
]
"""A set as it was stored before topology names existed, its change, and the errors."""


@pytest.mark.parametrize(("stored", "changes", "errors"), REPAIRS)
def test_set_gets_the_topology_name_of_its_parts(stored, changes, errors):
    old = changed(workload(), {**ON_KAI, **stored})
    assert list(map(str, validation.on_update(old, changed(old, changes), FACTS).errors)) == errors


ON = msgspec.structs.replace(FACTS, network=Network(auto_mnnvl_enabled=True))


@pytest.mark.parametrize(
    ("changes", "facts", "errors"),
    [
        ({"metadata.annotations": {KEY: "none"}}, FACTS, []),
        ({"metadata.annotations": {KEY: "fast"}}, ON, []),
        (
            {"metadata.annotations": {KEY: "fast"}},
            FACTS,
            [f'metadata.annotations.{KEY}: Invalid value: "fast": {DISABLED}'],
        ),
        (
            {f"{C}.annotations": {KEY: ""}},
            ON,
            [f'{C}.annotations.{KEY}: Invalid value: "": must be "none" or the name of a group'],
        ),
        (
            {f"{G}.annotations": {KEY: "a.b"}},
            ON,
            [f'{G}.annotations.{KEY}: Invalid value: "a.b": {LABEL}'],
        ),
        (
            {f"{G}.annotations": {KEY: "a" * 64}},
            ON,
            [f'{G}.annotations.{KEY}: Invalid value: "{"a" * 64}": must be no more than 63 characters'],
        ),
    ],
)
def test_mnnvl_group_must_be_a_label_or_none(changes, facts, errors):
    assert list(map(str, validation.on_create(changed(workload(), changes), facts).errors)) == errors
