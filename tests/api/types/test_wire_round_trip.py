"""Encoding and decoding of every wire type, on random values."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from grove.api.configuration.types import OperatorConfiguration
from grove.api.types import pod
from grove.api.types.podclique import PodClique
from grove.api.types.podcliqueset import PodCliqueSet
from grove.api.types.registry import KINDS
from tests.api.types.wire_values import raw_objects, values

encode = msgspec.json.Encoder().encode
quick = settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow], deadline=None)


@pytest.mark.parametrize("kind", [*KINDS, OperatorConfiguration], ids=lambda kind: kind.__name__)
@quick
@given(data=st.data())
def test_objects_round_trip_byte_for_byte(kind, data):
    value = data.draw(values(kind))
    wire = encode(value)
    back = msgspec.json.decode(wire, type=kind)
    assert back == value
    assert encode(back) == wire


@quick
@given(pod_spec=raw_objects(), metric=raw_objects(), claim=raw_objects())
def test_raw_templates_are_preserved_byte_for_byte(pod_spec, metric, claim):
    """Unknown fields, their order, white space and the notation of numbers are preserved."""
    written = (
        b'{"spec":{"template":{"cliques":[{"name":"a","spec":{"podSpec":%b,"autoScalingConfig":'
        b'{"maxReplicas":2,"metrics":[%b]}}}],"resourceClaimTemplates":[{"name":"c","templateSpec":%b}]}}}'
    ) % (pod_spec, metric, claim)
    read = msgspec.json.decode(written, type=PodCliqueSet)
    (clique,) = read.spec.template.cliques
    (claim_template,) = read.spec.template.resource_claim_templates
    assert bytes(clique.spec.pod_spec) == pod_spec
    assert [bytes(each) for each in clique.spec.auto_scaling_config.metrics] == [metric]
    assert bytes(claim_template.template_spec) == claim
    encoded = encode(PodClique(spec=clique.spec))
    assert b'"podSpec":' + pod_spec in encoded


@quick
@given(extra=raw_objects())
def test_unknown_fields_are_ignored(extra):
    """A newer API server, or a newer CRD, may send fields that we do not know."""
    known = b'{"metadata":{"name":"a"%b},"spec":{"nodeName":"n"%b},"status":{"phase":"Running"%b}%b}'
    more = b',"ofALaterVersion":' + extra
    plain = msgspec.json.decode(known % ((b"",) * 4), type=pod.Pod)
    assert msgspec.json.decode(known % ((more,) * 4), type=pod.Pod) == plain


@quick
@given(extra=raw_objects())
def test_template_view_reads_its_fields_among_others(extra):
    gpus = b'"resources":{"limits":{"nvidia.com/gpu":8,"cpu":"500m"}}'
    template = b'{"x":%b,"containers":[{"y":%b,"name":"a",%b}],"schedulerName":"kai"}' % (extra, extra, gpus)
    view = pod.read_template(msgspec.Raw(template))
    assert view.scheduler_name == "kai"
    assert view.containers[0].resources.limits == {"nvidia.com/gpu": 8, "cpu": "500m"}
