"""Warnings about fabric domains of a new set."""

from __future__ import annotations

import msgspec
import pytest

from grove.fabrics.channel_coverage import ChannelCoverage
from grove.rules.podcliqueset import validation
from tests.rules.builders import changed, workload
from tests.rules.fabric.domain_annotations import ENABLED, GPUS, KEY, NAME, OFF, ON, SCOPE, named
from tests.rules.messages import C, G

ONE_POD = {f"{C}.spec.replicas": 1, f"{C}.spec.minAvailable": 1}


def covered(coverage):
    return msgspec.structs.replace(ON, channel_coverage={"nvidia": coverage})


@pytest.mark.parametrize(
    ("changes", "facts", "expected"),
    [
        (ENABLED, ON, [f"metadata.annotations.{KEY} has no effect: no container requests accelerators"]),
        ({f'metadata.annotations["{NAME}"]': "x"}, OFF, [f"metadata.annotations.{NAME} is ignored"]),
        ({f"{G}.annotations": {NAME: "x"}}, OFF, [f"{G}.annotations.{NAME} is ignored"]),
        (named("team"), OFF, ["no container requests accelerators of nvidia; all containers get the claim"]),
        (
            {**GPUS, **named("team"), "spec.replicas": 2},
            OFF,
            [f"all replicas share one domain; set {SCOPE}: replica for one domain each"],
        ),
        ({**GPUS, **named("team", scope="replica"), "spec.replicas": 2}, OFF, []),
        ({**GPUS, **named("team")}, OFF, []),
        (
            {**GPUS, **named("team")},
            msgspec.structs.replace(OFF, unserved=frozenset({"nvidia"})),
            ["pods that need a ComputeDomain will wait: computedomains.resource.nvidia.com is not served"],
        ),
        (
            {**GPUS, **named("team")},
            msgspec.structs.replace(OFF, unserved=frozenset({"nvidia"}), outdated=frozenset({"nvidia"})),
            ["will wait: computedomains.resource.nvidia.com does not serve v1beta1: install"],
        ),
        (GPUS, msgspec.structs.replace(OFF, unserved=frozenset({"nvidia"})), []),
        (
            {**GPUS, **ENABLED},
            covered(ChannelCoverage(3, ("c",), 4)),
            ["1 of 3 nodes with accelerators of nvidia have"],
        ),
        (GPUS, covered(ChannelCoverage(3, ("c",), 4)), []),
        ({**GPUS, **ENABLED, "spec.replicas": 2}, covered(ChannelCoverage(2, (), 8)), []),
        (
            {**GPUS, **ENABLED, "spec.replicas": 2},
            covered(ChannelCoverage(2, (), 16)),
            [f"{C}: a node has one channel, so these 4 pods need 4 nodes and use 8 of at least 16"],
        ),
        ({**GPUS, **ENABLED, **ONE_POD}, covered(ChannelCoverage(2, (), 16)), []),
    ],
)
def test_unlikely_domain_setting_is_warned_of(changes, facts, expected):
    verdict = validation.on_create(changed(workload(), changes), facts)
    assert verdict.allowed
    assert len(verdict.warnings) == len(expected)
    assert all(text in warning for text, warning in zip(expected, verdict.warnings, strict=True))
