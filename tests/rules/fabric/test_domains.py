"""Admission of new sets with fabric domains: refused sets (V1 to V9) and defaults (DF)."""

from __future__ import annotations

import copy

import msgspec
import pytest

from grove.fabrics.provider import Scope
from grove.fabrics.registry import providers
from grove.fabrics.requirements import DomainRequirement, Mode
from grove.rules.fabric import domains
from grove.rules.podcliqueset import validation
from tests.fabrics.example_vendor import Example
from tests.rules.builders import changed, workload
from tests.rules.fabric.domain_annotations import (
    ALLOCATION,
    AUTO,
    ENABLED,
    GPUS,
    GROUP,
    KEY,
    NAME,
    NO_EXPLICIT,
    OFF,
    ON,
    OPTED_OUT,
    SCOPE,
    M,
    annotated,
    named,
)
from tests.rules.messages import C, G, T


def refused(changes, facts):
    return list(map(str, validation.on_create(changed(workload(), changes), facts).errors))


SPELLING = (
    "must consist of lower case alphanumeric characters or '-', and start and end with an alphanumeric "
    "character"
)
NOT_ENABLED = (
    "MNNVL is not enabled in the operator's configuration: set network.autoMNNVLEnabled, or remove the "
    "annotation grove.io/auto-mnnvl"
)
CONFLICT = (
    f"{C}.annotations.{NAME}: Forbidden: automatic MNNVL injection is enabled for this PodCliqueSet and each "
    "of its replicas; explicit ComputeDomain annotations require opting out of automatic injection with "
    'grove.io/auto-mnnvl: "disabled"'
)
ALL = {NAME: "team", ALLOCATION: "All"}
RESERVED = "Forbidden: the claim name mnnvl-claim is reserved for the operator: rename it"
TAKEN = {f"{C}.spec.podSpec.resourceClaims": [{"name": "mnnvl-claim", "resourceClaimName": "x"}]}
USED = {f"{C}.spec.podSpec.containers[0].resources.claims": [{"name": "mnnvl-claim"}]}

ALWAYS = [
    *(
        (
            annotated(value),
            [f'{AUTO}: Invalid value: "{value}": must be "enabled" or "disabled"'],
        )
        for value in ("true", "false", "", "Enabled", "enabled ")
    ),
    (
        {**OPTED_OUT, **named("")},
        [f'{C}.annotations.{NAME}: Invalid value: "": must not be empty: it is the name of the domain'],
    ),
    ({**OPTED_OUT, **named("My_Team")}, [f'{C}.annotations.{NAME}: Invalid value: "My_Team": {SPELLING}']),
    (
        {**OPTED_OUT, **named("a" * 59, scope="replica")},
        [
            f'{C}.annotations.{NAME}: Invalid value: "{"a" * 59}": must be no more than 58 characters with '
            "scope replica"
        ],
    ),
    (
        {**OPTED_OUT, **named("a" * 64)},
        [
            f'{C}.annotations.{NAME}: Invalid value: "{"a" * 64}": must be no more than 63 characters with '
            "scope shared"
        ],
    ),
    (
        {**OPTED_OUT, **named("a" * 54, place=M, scope="scaling-group-replica")},
        [
            f'{M}.annotations.{NAME}: Invalid value: "{"a" * 54}": must be no more than 53 characters with '
            "scope scaling-group-replica"
        ],
    ),
    (
        {**OPTED_OUT, **named("team", scope="rack")},
        [
            f'{C}.annotations.{SCOPE}: Invalid value: "rack": must be one of "shared", "replica", '
            '"scaling-group-replica"'
        ],
    ),
    (
        {**OPTED_OUT, f"{C}.annotations": {SCOPE: "replica"}},
        [f'{C}.annotations.{SCOPE}: Invalid value: "replica": has no effect without {NAME}: set both'],
    ),
    (
        {**OPTED_OUT, **named("team", scope="scaling-group-replica")},
        [
            f'{C}.annotations.{SCOPE}: Invalid value: "scaling-group-replica": clique router is in no '
            'scaling group: use "replica", or add the clique to one'
        ],
    ),
    (
        {**OPTED_OUT, **named("team"), **TAKEN},
        [f"{C}.spec.podSpec.resourceClaims[0].name: {RESERVED}"],
    ),
    (
        {**OPTED_OUT, **named("t", scope="replica"), **named("t-0", place=M)},
        [
            f'{M}.annotations.{NAME}: Invalid value: "t-0": ComputeDomain names would collide with those of '
            f'{C}, "t" with scope replica: choose another name'
        ],
    ),
]
"""V1, V5 to V8, with and without automatic MNNVL."""

WITH_AUTOMATION = [
    (named("team"), [CONFLICT]),
    ({**ENABLED, **GPUS, **named("team")}, [CONFLICT]),
    (
        {**GPUS, **ENABLED, **TAKEN, **USED},
        [
            f"{C}.spec.podSpec.resourceClaims[0].name: {RESERVED}",
            f"{C}.spec.podSpec.containers[0].resources.claims[0].name: {RESERVED}",
        ],
    ),
    (
        {**OPTED_OUT, f"{C}.annotations": {NAME: "team", GROUP: "fast"}},
        [f"{C}.annotations.{NAME}: Forbidden: cannot be combined with {GROUP}: use one of them"],
    ),
    (
        {f'metadata.annotations["{GROUP}"]': "a" * 55},
        [
            f'metadata.annotations.{GROUP}: Invalid value: "{"a" * 55}": must be no more than 54 characters: '
            "the name of its domain also has the set's name"
        ],
    ),
]
"""V4, V7, and the rules about `grove.io/mnnvl-group`."""

WITHOUT_AUTOMATION = [
    (ENABLED, [f'{AUTO}: Invalid value: "enabled": {NOT_ENABLED}']),
    (
        {**ENABLED, **named("team")},
        [f'{AUTO}: Invalid value: "enabled": {NOT_ENABLED}'],
    ),
]
"""V2."""

ACCEPTED_WITH_AUTOMATION = [
    {**OPTED_OUT, **named("team")},
    {**ENABLED, **GPUS},
    OPTED_OUT,
    ENABLED,
    {**OPTED_OUT, **TAKEN},
]
ACCEPTED_WITHOUT = [
    OPTED_OUT,
    named("team"),
    {**OPTED_OUT, **named("team")},
    {**named("t", scope="replica")},
    TAKEN,
]


@pytest.mark.parametrize(("changes", "errors"), ALWAYS)
@pytest.mark.parametrize("facts", [ON, OFF], ids=["on", "off"])
def test_invalid_annotation_is_refused(changes, errors, facts):
    assert refused(changes, facts) == errors


@pytest.mark.parametrize(("changes", "errors"), WITH_AUTOMATION)
def test_set_is_refused_with_automatic_mnnvl(changes, errors):
    assert refused(changes, ON) == errors


@pytest.mark.parametrize(("changes", "errors"), WITHOUT_AUTOMATION)
def test_set_is_refused_without_automatic_mnnvl(changes, errors):
    assert refused(changes, OFF) == errors


@pytest.mark.parametrize("changes", ACCEPTED_WITH_AUTOMATION)
def test_v3_set_is_accepted_with_automatic_mnnvl(changes):
    assert refused(changes, ON) == []


@pytest.mark.parametrize("changes", ACCEPTED_WITHOUT)
def test_set_is_accepted_without_automatic_mnnvl(changes):
    assert refused(changes, OFF) == []


WITHOUT_NAMES = [
    (
        {**OPTED_OUT, **named("team")},
        [
            f"{C}.annotations.{NAME}: Forbidden: explicit ComputeDomains are disabled by the administrator: "
            "remove the annotation, or set network.explicitComputeDomains in the operator's configuration"
        ],
    ),
]
"""V9."""


@pytest.mark.parametrize(("changes", "errors"), WITHOUT_NAMES)
def test_v9_explicit_domain_is_refused_if_disabled(changes, errors):
    assert refused(changes, NO_EXPLICIT) == errors


def test_v4_gives_one_error_per_clique_of_the_auto_vendor():
    two = msgspec.structs.replace(ON, fabrics=providers(("nvidia", "example"), {"example": Example}))
    changes = {
        **named("a"),
        **named("b", place=M),
        f"{T}.cliques[2].annotations": {"example.com/fabric": "c"},
    }
    assert [error.partition(":")[0] for error in refused(changes, two)] == [
        f"{C}.annotations.{NAME}",
        f"{M}.annotations.{NAME}",
    ]


def test_b2_allocation_mode_must_match_between_cliques():
    share = {NAME: "team", ALLOCATION: "All"}
    assert refused({f"{C}.annotations": share, f"{M}.annotations": share}, OFF) == []
    assert refused({f"{C}.annotations": share, f"{M}.annotations": {NAME: "team"}}, OFF) == [
        f'{M}.annotations.{ALLOCATION}: Invalid value: null: {C} shares the domain and has the value "All": '
        "use the same"
    ]
    assert refused({f"{C}.annotations": {NAME: "team"}, f"{M}.annotations": share}, OFF) == [
        f'{M}.annotations.{ALLOCATION}: Invalid value: "All": {C} shares the domain and does not set it: '
        "remove it"
    ]
    assert refused({f'metadata.annotations["{ALLOCATION}"]': "Some"}, OFF) == [
        f'metadata.annotations.{ALLOCATION}: Unsupported value: "Some": supported values: "Single", "All"'
    ]
    before = changed(workload(), {f"{C}.annotations": share})
    after = changed(workload(), {f"{C}.annotations": {NAME: "team"}})
    (error,) = validation.on_update(before, after, OFF).errors
    assert (
        str(error)
        == f"{C}.annotations.{ALLOCATION}: Forbidden: {ALLOCATION} cannot be removed after creation"
    )


def test_b2_default_allocation_mode_equals_leaving_it_out():
    share = {NAME: "team", ALLOCATION: "Single"}
    assert refused({f"{C}.annotations": share, f"{M}.annotations": {NAME: "team"}}, OFF) == []
    assert refused({f"{C}.annotations": {NAME: "team"}, f"{M}.annotations": share}, OFF) == []
    for facts_of in (lambda old, new: (old, new), lambda old, new: (new, old)):
        before, after = facts_of({f"{C}.annotations": share}, {f"{C}.annotations": {NAME: "team"}})
        assert validation.on_update(changed(workload(), before), changed(workload(), after), OFF).allowed
    before = changed(workload(), {f"{C}.annotations": share})
    (error,) = validation.on_update(before, changed(before, {f"{C}.annotations": ALL}), OFF).errors
    assert 'it cannot be changed from "Single" to "All"' in str(error)


def test_b2_allocation_mode_must_match_between_sets():
    other = DomainRequirement("nvidia", Mode.EXPLICIT, Scope.SHARED, "team", options=((ALLOCATION, "All"),))
    facts = msgspec.structs.replace(OFF, domain_sharers=(("other", other),))
    assert refused({f"{C}.annotations": {NAME: "team", ALLOCATION: "All"}}, facts) == []
    assert refused({f"{C}.annotations": {NAME: "mine"}}, facts) == []
    assert refused({f"{C}.annotations": {NAME: "team", SCOPE: "replica"}}, facts) == []
    assert refused({f"{C}.annotations": {NAME: "team"}}, facts) == [
        f"{C}.annotations.{ALLOCATION}: Invalid value: null: PodCliqueSet other shares the domain and has "
        'the value "All": use the same'
    ]


# Defaults.


def defaulted(changes, facts=ON):
    """The value of the annotation after defaulting, and whether the object is the same."""
    body = changed(workload(), changes)
    before = copy.deepcopy(body)
    after = domains.with_auto_annotation(body, facts)
    assert body == before
    assert after["spec"] == body["spec"]
    return (after["metadata"].get("annotations") or {}).get(KEY), after is body


def test_df_new_gpu_set_gets_the_annotation():
    assert defaulted(GPUS) == ("enabled", False)
    assert defaulted({**GPUS, "metadata.annotations": None}) == ("enabled", False)
    in_group = {f"{M}.spec.podSpec.containers[0].resources": {"requests": {"nvidia.com/gpu": 1}}}
    assert defaulted(in_group) == ("enabled", False)
    assert defaulted({**GPUS, **named("team")}) == ("enabled", False)  # DF1: validation refuses it


@pytest.mark.parametrize("value", ["enabled", "disabled", "", "nonsense"])
def test_df_set_with_an_annotation_is_unchanged(value):
    assert defaulted({**GPUS, **annotated(value)}) == (value, True)
    assert defaulted({**GPUS, f"{G}.annotations": {GROUP: "none"}}) == (None, True)


def test_df_other_sets_get_no_annotation():
    assert defaulted({}) == (None, True)
    assert defaulted(GPUS, OFF) == (None, True)
    assert defaulted(GPUS, msgspec.structs.replace(ON, fabrics=providers(()))) == (None, True)


@pytest.mark.parametrize("body", [{}, [], {"metadata": 1}, {"metadata": {}, "spec": {"template": 7}}])
def test_df_undecodable_set_is_unchanged(body):
    assert domains.with_auto_annotation(body, ON) is body
