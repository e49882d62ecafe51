"""Remedies of sets that are rendered from a DynamoGraphDeployment."""

from __future__ import annotations

import re

import pytest

from grove.api.meta import ObjectMeta, OwnerReference
from grove.api.naming.external_keys import DYNAMO_GROUP, DYNAMO_KIND
from grove.dynamo.api.graph_deployment import DynamoGraphDeployment
from grove.reasons.codes import ReasonCode as Code
from grove.reasons.graph_remedies import GRAPH_REMEDIES, adapted_to, remedy_in
from grove.reasons.model import WaitReason
from grove.reasons.texts import REMEDIES

ONLY_OF_SETS = re.compile(
    r"(?i)\b(the|other|another) sets?\b|\bcliques?\b|\bgroups?\b|minAvailable|\blevel\b|pack\.preferred"
)
"""What the user of a deployment does not have, or cannot change."""
OF_ADMINISTRATORS = {
    Code.TOPOLOGY_LABEL_MISSING,  # the level is one of the ClusterTopology
    Code.TOPOLOGY_LEVELS_UNAVAILABLE,
    Code.UPDATE_PAUSED,  # only the set itself can be paused
    Code.INIT_CONTAINER_WAITS,  # the message names the clique, whose reason is shown as well
}


def owned(controller: bool = True, kind: str = DYNAMO_KIND) -> ObjectMeta:
    owner = OwnerReference("nvidia.com/v1beta1", kind, "app", "u", controller)
    return ObjectMeta(name="app", owner_references=(owner,))


@pytest.mark.parametrize("code", sorted(set(Code) - OF_ADMINISTRATORS))
def test_remedy_of_a_graph_names_nothing_that_only_sets_have(code):
    remedy = adapted_to(owned())(WaitReason(code)).advice
    assert not ONLY_OF_SETS.search(remedy), remedy
    assert remedy == remedy.strip(" .")
    assert len(remedy) < 120


def test_kind_of_graphs_is_the_one_of_the_crd():
    kind = DynamoGraphDeployment.KIND
    assert (kind.group, kind.name) == (DYNAMO_GROUP, DYNAMO_KIND)


@pytest.mark.parametrize("workload", [ObjectMeta(name="app"), owned(controller=False), owned(kind="Other")])
def test_set_without_a_graph_keeps_its_remedies(workload):
    for code in Code:
        assert adapted_to(workload)(WaitReason(code)).advice == REMEDIES[code]


def test_special_remedy_is_kept():
    reason = WaitReason(Code.NODE_TAINT, remedy="tolerate taint x")
    assert adapted_to(owned())(reason) is reason


@pytest.mark.parametrize("code", Code)
def test_remedy_at_the_end_of_a_line_is_found(code):
    for workload in (ObjectMeta(name="app"), owned()):
        reason = adapted_to(workload)(WaitReason(code, "found"))
        assert remedy_in(reason.line, code) == reason.advice
    assert remedy_in("found; do something special", code) == ""


def test_remedies_of_graphs_differ_from_those_of_sets():
    assert [code for code, remedy in GRAPH_REMEDIES.items() if remedy == REMEDIES[code]] == []
