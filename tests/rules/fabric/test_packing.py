"""Admission of `grove.io/pack-domains`."""

from __future__ import annotations

import msgspec
import pytest

from grove.api.configuration.types import DomainPacking
from grove.fabrics.channel_coverage import ChannelCoverage
from grove.fabrics.registry import providers
from grove.rules.podcliqueset import validation
from tests.rules.builders import changed, workload
from tests.rules.fabric.domain_annotations import ENABLED, GPUS, OFF, ON, named
from tests.rules.messages import C

KEY = "grove.io/pack-domains"
PATH = f"metadata.annotations.{KEY}"


def packed(value):
    return {f'metadata.annotations["{KEY}"]': value}


def sized(pods, replicas=1):
    return {f"{C}.spec.replicas": pods, f"{C}.spec.minAvailable": 1, "spec.replicas": replicas}


def configured(packing, facts=ON, **more):
    fabrics = providers(("nvidia",), packing=DomainPacking(packing))
    return msgspec.structs.replace(facts, fabrics=fabrics, **more)


AUTO = {**GPUS, **ENABLED}


@pytest.mark.parametrize(
    ("changes", "facts", "expected"),
    [
        (packed("required"), OFF, ""),
        (packed("Required"), OFF, f'{PATH}: Unsupported value: "Required": supported values: "off", "pref'),
        (packed(""), OFF, f'{PATH}: Unsupported value: ""'),
        ({**AUTO, **packed("required"), **sized(18, 4)}, ON, ""),
        (
            {**AUTO, **packed("required"), **sized(19)},
            ON,
            "has 19 pods, each on a node of its own, and nvidia",
        ),
        ({**AUTO, **packed("preferred"), **sized(19)}, ON, ""),
        ({**packed("required"), **sized(19)}, ON, ""),
        ({**AUTO, **sized(19)}, configured("required"), "which network.packDomains of the operator's"),
        ({**AUTO, **sized(19), **packed("off")}, configured("required"), ""),
        (
            {**GPUS, **named("team"), **packed("required"), **sized(7, 3)},
            OFF,
            "ComputeDomain team has 21 pods",
        ),
        ({**GPUS, **named("team", scope="replica"), **packed("required"), **sized(7, 3)}, OFF, ""),
    ],
)
def test_only_impossible_packing_is_refused(changes, facts, expected):
    verdict = validation.on_create(changed(workload(), changes), facts)
    assert verdict.allowed is not bool(expected)
    assert expected in verdict.message


@pytest.mark.parametrize(
    ("before", "after", "facts", "allowed"),
    [
        ({}, packed("required"), ON, True),
        (packed("required"), packed("off"), ON, True),
        (packed("off"), packed("on"), ON, False),
        (sized(18), {**sized(18), **packed("required")}, ON, True),
        (sized(19), {**sized(19), **packed("required")}, ON, False),
        ({**sized(18), **packed("required")}, {**sized(19), **packed("required")}, ON, False),
        (sized(19), {**sized(19), 'metadata.annotations["x"]': "y"}, configured("required"), True),
        (sized(25), sized(20), configured("required"), True),
        (sized(25), sized(26), configured("required"), False),
        (sized(18), sized(19), configured("required"), False),
        ({**sized(25), **packed("off")}, sized(20), configured("required"), False),
        (packed("on"), {**packed("on"), 'metadata.annotations["x"]': "y"}, ON, True),
    ],
)
def test_packing_may_change(before, after, facts, allowed):
    old, new = (changed(workload(), {**AUTO, **each}) for each in (before, after))
    verdict = validation.on_update(old, new, facts)
    assert verdict.allowed is allowed, verdict.message


def covered(largest, packing="preferred"):
    return configured(packing, channel_coverage={"nvidia": ChannelCoverage(40, (), 8, largest)})


@pytest.mark.parametrize(
    ("changes", "facts", "expected"),
    [
        (sized(17), covered(18), ""),
        (
            sized(17),
            covered(16),
            "17 pods, 16 nodes with a channel in the largest partition (nvidia.com/gpu.clique",
        ),
        (sized(17), covered(16), "it will be split"),
        (sized(17), covered(16, "required"), "it will wait"),
        (sized(2), covered(1), "2 pods, 1 node with a channel"),
        (sized(17), covered(16, "off"), ""),
        (sized(17), covered(0), ""),
        (sized(17), covered(0, "required"), "17 pods, 0 nodes with a channel"),
    ],
)
def test_too_small_partitions_are_warned_of(changes, facts, expected):
    verdict = validation.on_create(changed(workload(), {**AUTO, **changes}), facts)
    assert verdict.allowed
    warnings = [each for each in verdict.warnings if "partition" in each]
    assert len(warnings) == bool(expected)
    assert not expected or expected in warnings[0]
