"""Pinned hashes: an operator version that computes other ones would roll out every workload."""

from __future__ import annotations

import msgspec
import pytest

from grove.api.types.podcliqueset import CliqueTemplate
from grove.plan.desired.template_hash import generation_hash, spec_digest, template_hash
from tests.plan.builders import Body, a_clique, a_set, read_set

PLAIN = a_clique("a:2/1")
FULL = a_clique(
    "a:1",
    schedulerName="kai-scheduler",
    tolerations=[{"key": "gpu", "operator": "Exists"}],
    terminationGracePeriodSeconds=5,
) | {"labels": {"team": "blue"}, "annotations": {"why": "because"}}
UNKNOWN = a_clique("a:1", fromTheFuture={"deep": [1, 2.5, {"er": None}]}, unicode="größer")


def template(body, **changes) -> CliqueTemplate:
    return msgspec.json.decode(msgspec.json.encode({**body, **changes}), type=CliqueTemplate)


@pytest.mark.parametrize(
    ("body", "priority", "pinned"),
    [
        (PLAIN, "", "f2462ba16997c083"),
        (PLAIN, "urgent", "462abe28d76a9456"),
        (FULL, "", "041d9cbc80c0ad5d"),
        (UNKNOWN, "", "e1e569e14702c856"),
    ],
    ids=["plain", "with a priority", "with labels and annotations", "with fields we do not know"],
)
def test_template_hashes_are_stable(body, priority, pinned):
    assert template_hash(template(body), priority) == pinned


def test_generation_hashes_are_stable():
    assert generation_hash(read_set(a_set("a:2/1 b:1", "x:2/1=b"))) == "b744a72c41aa43c4"


def test_hash_ignores_form_and_key_order():
    spellings = (
        b'{"name":"a","spec":{"podSpec":{"containers":[{"name":"c","image":"i"}],"hostIPC":true}}}',
        b'{"spec":{"podSpec":{"hostIPC" :true,"containers":[{"image":"\\u0069","name":"c"}]}},"name":"a"}',
    )
    hashes = {template_hash(msgspec.json.decode(text, type=CliqueTemplate), "") for text in spellings}
    assert len(hashes) == 1


WRITTEN = {
    "containers": [
        {
            "name": "c",
            "args": [],
            "env": [{"name": "EMPTY", "value": ""}],
            "tty": False,
            "livenessProbe": {"initialDelaySeconds": 0, "periodSeconds": 5},
            "resources": {"limits": {"nvidia.com/gpu": 8, "cpu": 0.5, "memory": "1024Mi"}},
        },
        {
            "name": "d",
            "command": None,
            "env": [{"name": "CPUS", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}],
            "resources": {"limits": {}, "requests": {}},
            "ports": [{"containerPort": 80, "hostPort": 0}],
            "workingDir": "",
        },
    ],
    "hostNetwork": False,
    "nodeSelector": {},
    "volumes": [
        {"name": "v", "emptyDir": {"sizeLimit": "2048Mi"}},
        {"name": "w", "emptyDir": {}},
        {"name": "x", "ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": ""}}}},
    ],
}
ECHOED = {
    "volumes": [
        {"name": "v", "emptyDir": {"sizeLimit": "2Gi"}},
        {"name": "w", "emptyDir": {}},
        {
            "name": "x",
            "ephemeral": {
                "volumeClaimTemplate": {"metadata": {}, "spec": {"resources": {}, "storageClassName": ""}}
            },
        },
    ],
    "containers": [
        {
            "name": "c",
            "env": [{"name": "EMPTY"}],
            "livenessProbe": {"periodSeconds": 5},
            "resources": {"limits": {"nvidia.com/gpu": "8", "cpu": "500m", "memory": "1Gi"}},
        },
        {
            "name": "d",
            "env": [
                {
                    "name": "CPUS",
                    "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "0"}},
                }
            ],
            "resources": {},
            "ports": [{"containerPort": 80}],
        },
    ],
}


def ephemeral(**spec: str) -> Body:
    return {"volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": spec}}}]}


def test_hash_ignores_defaults_written_by_go_clients():
    """As client-go's types write it: quantities become strings, every container has resources."""
    written, echoed = (a_clique("a:1", **spec) for spec in (WRITTEN, ECHOED))
    assert template_hash(template(written), "") == template_hash(template(echoed), "")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {"automountServiceAccountToken": False}),
        ({}, {"enableServiceLinks": False}),
        ({}, {"terminationGracePeriodSeconds": 0}),
        ({"nodeSelector": {"value": ""}}, {"nodeSelector": {}}),
        (ephemeral(storageClassName=""), ephemeral()),
        (ephemeral(), {"volumes": [{"name": "v", "ephemeral": {}}]}),
        ({"overhead": {"cpu": "1"}}, {"overhead": {"cpu": "1m"}}),
        ({"overhead": {"cpu": "1"}}, {"overhead": {"cpu": "one"}}),
        ({"volumes": [{"name": "v", "emptyDir": {}}]}, {"volumes": [{"name": "v"}]}),
    ],
    ids=str,
)
def test_hash_changes_with_meaning(before, after):
    hashes = {template_hash(template(a_clique("a:1", **spec)), "") for spec in (before, after)}
    assert len(hashes) == 2


@pytest.mark.parametrize(
    "changes",
    [
        {"labels": {"team": "red"}},
        {"annotations": {"why": "not"}},
        {"spec": a_clique("a:2/1", hostNetwork=True)["spec"]},
        {"spec": a_clique("a:2/1", fromTheFuture=1)["spec"]},
    ],
    ids=["labels", "annotations", "a field", "a field we do not know"],
)
def test_hash_covers_everything_pods_are_created_from(changes):
    assert template_hash(template(PLAIN, **changes), "") != template_hash(template(PLAIN), "")


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "other"},
        {"spec": PLAIN["spec"] | {"replicas": 9, "minAvailable": 2, "roleName": "r"}},
        {"spec": PLAIN["spec"] | {"startsAfter": ["b"], "autoScalingConfig": {"maxReplicas": 3}}},
        {"topologyConstraint": {"packDomain": "rack"}},
    ],
    ids=["the name", "counts", "order and scaling", "topology"],
)
def test_hash_ignores_fields_that_pods_do_not_use(changes):
    assert template_hash(template(PLAIN, **changes), "") == template_hash(template(PLAIN), "")


def test_generation_hash_ignores_constraint_and_fallbacks():
    plain, constrained = a_set("a:1 b:1"), a_set("a:1 b:1")
    constraint = {"topologyName": "racks", "packDomain": "rack", "fallbacks": [{"packDomain": "zone"}]}
    constrained["spec"]["template"]["topologyConstraint"] = constraint
    assert generation_hash(read_set(constrained)) == generation_hash(read_set(plain))


def test_generation_hash_depends_on_clique_order():
    workload = a_set("a:1 b:1")
    workload["spec"]["template"]["cliques"][0]["labels"] = {"only": "here"}
    before = generation_hash(read_set(workload))
    workload["spec"]["template"]["cliques"].reverse()
    assert generation_hash(read_set(workload)) != before


@pytest.mark.parametrize("amount", ["1e999999999", "1e-999999999", "9" * 5_000])
def test_huge_quantity_is_hashed_as_written(amount):
    """Quantities of a pod spec are not validated before it is hashed, and 10^999999999 takes minutes."""
    spec = {"containers": [{"resources": {"limits": {"cpu": amount}}}]}
    other = {"containers": [{"resources": {"limits": {"cpu": f"{amount}0"}}}]}
    assert spec_digest(msgspec.json.encode(spec)) != spec_digest(msgspec.json.encode(other))
