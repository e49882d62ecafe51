"""Validation of the fallbacks of a set's topology constraint."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from grove.api.configuration.types import Scheduler, SchedulerProfile
from grove.rules.podcliqueset import validation
from grove.schedulers.registry import backends
from tests.rules.builders import FACTS, GONE, changed, workload
from tests.rules.messages import ON_KAI, C, G, T

S = f"{T}.topologyConstraint"
F = f"{S}.fallbacks"
CT = f"{C}.topologyConstraint"
GT = f"{G}.topologyConstraint"
DURATION = 'must be a duration such as "4h0m0s" or "90s"'
PROFILE = SchedulerProfile("default-scheduler", {"placement": "All"})
PLACING = msgspec.structs.replace(FACTS, backends=backends(Scheduler((PROFILE,))))
"""The only scheduler for which fallbacks are tried."""


def fallback(domain="", topology="", after="30s"):
    fields = {"topologyName": topology, "packDomain": domain, "after": after}
    return {key: value for key, value in fields.items() if value}


def with_fallbacks(*fallbacks, domain="block", **parts):
    constraint = {"topologyName": "h100", "packDomain": domain, "fallbacks": list(fallbacks)}
    return {S: {key: value for key, value in constraint.items() if value}, **parts}


def required(domain, **more):
    return {"pack": {"required": domain}, **more}


def unknown(domain, part, levels="zone, block, rack, host"):
    return f"topology domain '{domain}' of {part} does not exist in cluster topology [{levels}]"


REFUSALS = [
    (
        with_fallbacks(fallback("zone"), fallback("sled", after="soon")),
        [
            f'{F}[1].after: Invalid value: "soon": {DURATION}',
            f'{F}[1].packDomain: Invalid value: "sled": {unknown("sled", "PodCliqueSet")}',
        ],
    ),
    (
        with_fallbacks(fallback("zone", after="0s")),
        [f'{F}[0].after: Invalid value: "0s": must be greater than 0'],
    ),
    (
        with_fallbacks(fallback(topology="mi300")),
        [
            f'{F}[0].topologyName: Invalid value: "mi300": ClusterTopology or ClusterTopologyBinding "mi300" '
            "not found"
        ],
    ),
    (
        with_fallbacks(fallback("zone", "gb200"), **{CT: required("rack")}),
        [
            f'{F}[0].packDomain: Invalid value: "zone": {unknown("zone", "PodCliqueSet", "block, nvlink")}',
            f'{F}[0].topologyName: Invalid value: "gb200": '
            + unknown("rack", "PodClique 'router'", "block, nvlink"),
        ],
    ),
    (
        with_fallbacks(fallback("rack"), **{GT: required("block"), CT: required("rack")}),
        [
            f'{F}[0].packDomain: Invalid value: "rack": PodCliqueSet asks for rack, and '
            "PodCliqueScalingGroup 'engine' in it for block, which is the broader one in topology h100"
        ],
    ),
    (
        with_fallbacks(fallback(topology="gb200"), **{CT: required("block", topologyName="h100")}),
        [
            f'{F}[0].topologyName: Invalid value: "gb200": PodClique \'router\' names topology "h100" '
            "itself: remove its topologyName"
        ],
    ),
    (
        with_fallbacks(fallback("block"), fallback("zone"), fallback("zone", "h100", "5s")),
        [
            f'{F}[0]: Invalid value: {{"packDomain":"block","after":"30s"}}: is the same as the constraint: '
            "remove or change it",
            f'{F}[2]: Invalid value: {{"topologyName":"h100","packDomain":"zone","after":"5s"}}: is the same '
            "as fallbacks[1]: remove or change it",
        ],
    ),
]
REFUSED = [({**ON_KAI, **changes}, errors) for changes, errors in REFUSALS]


@pytest.mark.parametrize(("changes", "errors"), REFUSED)
def test_invalid_fallback_is_refused(changes, errors):
    assert list(map(str, validation.on_create(changed(workload(), changes), FACTS).errors)) == errors


@pytest.mark.parametrize(
    "changes",
    [
        with_fallbacks(fallback("zone")),
        with_fallbacks(fallback("block", "gb200"), fallback("zone"), domain="rack"),
        with_fallbacks(fallback(topology="gb200"), domain="", **{CT: required("block")}),
        with_fallbacks(fallback("block"), fallback("zone"), domain="rack", **{CT: required("host")}),
        with_fallbacks({"packDomain": "zone"}),
    ],
)
def test_valid_fallbacks_are_accepted(changes):
    verdict = validation.on_create(changed(workload(), changes), PLACING)
    assert (verdict.message, verdict.warnings) == ("", ())


def test_fallbacks_are_refused_if_scheduler_ignores_them():
    body = changed(workload(), {**ON_KAI, **with_fallbacks(fallback("zone"))})
    why = (
        "kai-scheduler does not try topologyConstraint.fallbacks: remove them, or use default-scheduler with "
        "placement in its profile"
    )
    assert list(map(str, validation.on_create(body, FACTS).errors)) == [
        f'spec: Invalid value: "kai-scheduler": {why}'
    ]
    lenient = msgspec.structs.replace(FACTS.backends, lenient=frozenset({"kai-scheduler"}))
    verdict = validation.on_create(body, msgspec.structs.replace(FACTS, backends=lenient))
    assert (verdict.message, verdict.warnings) == ("", (why,))


@pytest.mark.parametrize(
    ("changes", "warnings"),
    [
        (
            with_fallbacks(fallback("zone"), fallback("rack")),
            [
                f"{F}[1] has no effect: domain 'rack' is narrower than domain 'block', which is tried before "
                "it"
            ],
        ),
        (
            with_fallbacks(fallback("rack"), domain="", **{CT: required("host")}),
            [f"{F}[0] has no effect: domain 'rack' is narrower than no domain, which is tried before it"],
        ),
        (with_fallbacks(fallback("nvlink", "gb200"), fallback("zone")), []),
    ],
)
def test_narrower_fallback_is_warned_of(changes, warnings):
    assert list(validation.on_create(changed(workload(), changes), PLACING).warnings) == warnings


LEVELS = ["zone", "block", "rack", "host", "nvlink"]
domains = st.sampled_from(LEVELS)


@settings(max_examples=200, deadline=None)
@given(
    own=domains,
    other=domains,
    topology=st.sampled_from(["h100", "gb200"]),
    group=st.builds(required, domains) | st.just({"pack": {"preferred": "host"}}),
    clique=st.builds(required, domains),
)
def test_fallback_is_checked_like_a_constraint(own, other, topology, group, clique):
    parts = {GT: group, CT: clique}
    tried = changed(workload(), with_fallbacks(fallback(other, topology), domain=own, **parts))
    alone = changed(workload(), {S: {"topologyName": topology, "packDomain": other}, **parts})
    itself = changed(workload(), {S: {"topologyName": "h100", "packDomain": own}, **parts})
    assume((own, "h100") != (other, topology))
    assume(validation.on_create(itself, PLACING).allowed)
    assert validation.on_create(tried, PLACING).allowed is validation.on_create(alone, PLACING).allowed


FIXED = f"{F}: Forbidden: fallbacks cannot be changed after creation: create a new PodCliqueSet instead"


@pytest.mark.parametrize(
    ("changes", "errors"),
    [
        ({F: [fallback("zone")]}, [FIXED]),
        ({F: [fallback("rack", "gb200"), fallback("zone")]}, [FIXED]),
        ({f"{F}[0].after": "31s"}, [FIXED]),
        ({F: GONE}, [FIXED]),
        ({f"{F}[1].after": "0m30s"}, []),
        ({"spec.replicas": 4}, []),
        ({S: GONE}, [f"{S}: Forbidden: PodCliqueSet topology constraint cannot be removed after creation"]),
    ],
)
def test_fallbacks_cannot_be_changed(changes, errors):
    """The verdict does not depend on whether topologies still exist."""
    old = changed(workload(), with_fallbacks(fallback("zone"), fallback("rack", "gb200")))
    facts = msgspec.structs.replace(PLACING, topologies={})
    assert list(map(str, validation.on_update(old, changed(old, changes), facts).errors)) == errors


def test_fallbacks_cannot_be_added_with_topology_name():
    """A set that was stored without the name of its topology may get it, and nothing else."""
    old = changed(workload(), {S: {"packDomain": "rack"}})
    new = changed(old, {f"{S}.topologyName": "h100", F: [fallback("zone")]})
    assert list(map(str, validation.on_update(old, new, PLACING).errors)) == [FIXED]


def test_stored_fallback_with_invalid_duration_can_be_kept():
    old = changed(workload(), with_fallbacks(fallback("zone", after="soon")))
    assert validation.on_update(old, changed(old, {"spec.replicas": 4}), PLACING).allowed


def test_topologies_of_fallbacks_are_looked_up():
    body = changed(workload(), with_fallbacks(fallback("zone"), fallback(topology="gb200")))
    assert validation.topologies_named(body) == {"h100", "gb200"}
