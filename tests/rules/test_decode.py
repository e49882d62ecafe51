"""Objects with fields of a wrong type: all of them are reported at once by their paths, and nothing
raises."""

from __future__ import annotations

import pytest

from grove.rules import cluster_topology
from grove.rules.podcliqueset import validation
from grove.rules.podcliqueset.defaults import default_set
from tests.rules.builders import FACTS, GONE, changed, workload
from tests.rules.messages import C, G, T


def deep(levels=100_000):
    value: dict[str, object] = {}
    for _ in range(levels):
        value = {"x": value}
    return value


TYPE_ERRORS = [
    ({"spec": GONE}, ["spec: Required value"]),
    ({"spec": []}, ['spec: Invalid value: "(list)": must be an object']),
    ({"spec.replicas": "3"}, ['spec.replicas: Invalid value: "3": must be a whole number']),
    ({"spec.replicas": 1.5}, ["spec.replicas: Invalid value: 1.5: must be a whole number"]),
    ({"spec.replicas": True}, ["spec.replicas: Invalid value: true: must be a whole number"]),
    ({T: None}, [f"{T}: Required value"]),
    ({f"{T}.cliques": {"a": 1}}, [f'{T}.cliques: Invalid value: "(object)": must be a list']),
    ({f"{T}.cliques": None}, [f"{T}.cliques: Required value"]),
    ({C: None}, [f"{C}: Required value"]),
    ({C: 7}, [f"{C}: Invalid value: 7: must be an object"]),
    (
        {C: {"name": 7, "labels": [], "spec": {"minAvailable": "x"}}},
        [
            f"{C}.name: Invalid value: 7: must be text",
            f'{C}.labels: Invalid value: "(list)": must be an object',
            f"{C}.spec.podSpec: Required value",
            f'{C}.spec.minAvailable: Invalid value: "x": must be a whole number',
        ],
    ),
    (
        {
            f"{C}.labels": {"a": "fine"},
            f"{C}.spec.autoScalingConfig": {"maxReplicas": "x", "metrics": [{"type": "Resource"}, 8]},
        },
        [
            f'{C}.spec.autoScalingConfig.maxReplicas: Invalid value: "x": must be a whole number',
            f"{C}.spec.autoScalingConfig.metrics[1]: Invalid value: 8: must be an object",
        ],
    ),
    ({"spec.updateStrategy": {"type": 5}}, ["spec.updateStrategy.type: Invalid value: 5: must be text"]),
    ({f"{C}.labels": {"a": 1}}, [f"{C}.labels[a]: Invalid value: 1: must be text"]),
    ({f"{C}.labels": {(1, 2): "a"}}, [f'{C}.labels: Invalid value: "(1, 2)": keys must be text']),
    ({f"{C}.name": "\ud800"}, [f'{C}.name: Invalid value: "(text)": must be valid Unicode']),
    ({f"{C}.spec.podSpec": "x"}, [f'{C}.spec.podSpec: Invalid value: "x": must be an object']),
    (
        {f"{C}.spec.podSpec.containers": [{"env": [{"name": 5}]}, 6]},
        [
            f"{C}.spec.podSpec.containers[0].env[0].name: Invalid value: 5: must be text",
            f"{C}.spec.podSpec.containers[1]: Invalid value: 6: must be an object",
        ],
    ),
    (
        {f"{C}.spec.startsAfter": [None, 1]},
        [
            f"{C}.spec.startsAfter[0]: Required value",
            f"{C}.spec.startsAfter[1]: Invalid value: 1: must be text",
        ],
    ),
    ({f"{C}.spec.autoScalingConfig": {}}, [f"{C}.spec.autoScalingConfig.maxReplicas: Required value"]),
    ({f"{G}.cliqueNames": "a"}, [f'{G}.cliqueNames: Invalid value: "a": must be a list']),
    (
        {f"{T}.resourceClaimTemplates": [{"name": "a", "templateSpec": {"spec": {"devices": 3}}}]},
        [
            f"{T}.resourceClaimTemplates[0].templateSpec.spec.devices: Invalid value: 3: must be an object",
        ],
    ),
    (
        {"spec.updateStrategy": {"type": "Blue", "paused": "no"}},
        [
            'spec.updateStrategy.type: Unsupported value: "Blue": supported values: "RollingRecreate", '
            '"OnDelete"',
            'spec.updateStrategy.paused: Invalid value: "no": must be true or false',
        ],
    ),
    ({"metadata": 5}, ["metadata: Invalid value: 5: must be an object"]),
    (
        {f"{C}.spec.podSpec.later": {(1, 2): 1}},
        [
            "spec: Invalid value: null: cannot be read: Only dicts with str-like or number-like keys are "
            "supported"
        ],
    ),
]


@pytest.mark.parametrize(("changes", "errors"), TYPE_ERRORS)
def test_fields_of_wrong_type_are_refused(changes, errors):
    body = changed(workload(), changes)
    assert list(map(str, validation.on_create(body, FACTS).errors)) == errors
    assert list(map(str, validation.on_update(workload(), body, FACTS).errors)) == errors


@pytest.mark.parametrize("body", [None, [], "x", 5, True, {}, {"spec": {}}])
def test_body_that_is_no_set_is_refused(body):
    assert default_set(body) == body
    assert not validation.on_create(body, FACTS).allowed
    assert not validation.on_update(workload(), body, FACTS).allowed
    assert not cluster_topology.on_create(body, FACTS).allowed
    assert validation.topologies_named(body) == frozenset()


@pytest.mark.parametrize("path", ["spec.later", f"{C}.spec.podSpec.later", f"{T}.cliques", "metadata.labels"])
def test_deeply_nested_object_is_refused(path):
    body = workload()
    here = body
    *way, last = path.replace("[0]", ".0").split(".")
    for step in way:
        here = here[int(step) if step.isdigit() else step]
    here[last] = deep()
    assert default_set(body)
    for verdict in (validation.on_create(body, FACTS), validation.on_update(workload(), body, FACTS)):
        assert verdict.errors
        assert len(verdict.message) < 1000
    assert validation.on_update(body, workload(), FACTS).allowed, "the stored set can be corrected"


def test_message_for_many_errors_is_truncated():
    huge = "x" * 10_000
    body = changed(workload(), {f"{T}.cliques": [huge] * 1000, "metadata.labels": {huge: 1}})
    verdict = validation.on_create(body, FACTS)
    assert len(verdict.errors) == 1001
    assert len(verdict.message) < 30_000
    assert verdict.message.endswith(", and 901 more]")
