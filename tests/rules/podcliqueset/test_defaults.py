"""Defaults of a PodCliqueSet, on creation and on update."""

from __future__ import annotations

import copy

import pytest

from grove.rules.podcliqueset.defaults import default_set
from tests.rules.builders import GONE, bare, changed, clique, group

CLIQUE = "spec.template.cliques[0]"
GROUP = "spec.template.podCliqueScalingGroups[0]"
PLAIN = bare(
    clique("a", 3, autoScalingConfig={"maxReplicas": 9}),
    clique("b"),
    podCliqueScalingGroups=[group("g", "b", replicas=4, scaleConfig={"maxReplicas": 9})],
)


def at(body, path):
    for step in path.replace("[", ".").replace("]", "").split("."):
        body = body[int(step) if step.isdigit() else step]
    return body


@pytest.mark.parametrize(
    ("changes", "path", "value"),
    [
        ({"metadata.namespace": ""}, "metadata.namespace", "default"),
        ({"metadata.namespace": GONE}, "metadata.namespace", "default"),
        ({}, "metadata.namespace", "ns"),
        ({f"{CLIQUE}.spec.replicas": 0}, f"{CLIQUE}.spec.replicas", 1),
        ({f"{CLIQUE}.spec.replicas": GONE}, f"{CLIQUE}.spec.replicas", 1),
        ({f"{CLIQUE}.spec.replicas": -1}, f"{CLIQUE}.spec.replicas", -1),
        ({}, f"{CLIQUE}.spec.minAvailable", 3),
        ({f"{CLIQUE}.spec.replicas": 0}, f"{CLIQUE}.spec.minAvailable", 1),
        ({f"{CLIQUE}.spec.minAvailable": None}, f"{CLIQUE}.spec.minAvailable", 3),
        ({f"{CLIQUE}.spec.minAvailable": 2}, f"{CLIQUE}.spec.minAvailable", 2),
        ({}, f"{CLIQUE}.spec.autoScalingConfig.minReplicas", 3),
        (
            {f"{CLIQUE}.spec.autoScalingConfig.minReplicas": 5},
            f"{CLIQUE}.spec.autoScalingConfig.minReplicas",
            5,
        ),
        ({f"{CLIQUE}.spec.roleName": GONE}, f"{CLIQUE}.spec.roleName", "a"),
        ({f"{CLIQUE}.spec.roleName": "leader"}, f"{CLIQUE}.spec.roleName", "leader"),
        ({}, f"{CLIQUE}.spec.podSpec.restartPolicy", "Always"),
        ({f"{CLIQUE}.spec.podSpec.restartPolicy": ""}, f"{CLIQUE}.spec.podSpec.restartPolicy", "Always"),
        ({f"{CLIQUE}.spec.podSpec.restartPolicy": "Never"}, f"{CLIQUE}.spec.podSpec.restartPolicy", "Never"),
        ({}, f"{CLIQUE}.spec.podSpec.terminationGracePeriodSeconds", 30),
        (
            {f"{CLIQUE}.spec.podSpec.terminationGracePeriodSeconds": 0},
            f"{CLIQUE}.spec.podSpec.terminationGracePeriodSeconds",
            0,
        ),
        ({}, f"{GROUP}.scaleConfig.minReplicas", 4),
        ({f"{GROUP}.replicas": GONE}, f"{GROUP}.scaleConfig.minReplicas", 1),
        ({}, "spec.template.terminationDelay", "4h0m0s"),
        ({"spec.template.terminationDelay": "10s"}, "spec.template.terminationDelay", "10s"),
        ({}, "spec.template.headlessServiceConfig", {"publishNotReadyAddresses": True}),
        (
            {"spec.template.headlessServiceConfig": {"publishNotReadyAddresses": False}},
            "spec.template.headlessServiceConfig",
            {"publishNotReadyAddresses": False},
        ),
    ],
)
def test_missing_field_gets_its_default(changes, path, value):
    assert at(default_set(changed(PLAIN, changes)), path) == value


def test_optional_sections_are_not_added():
    body = default_set(bare(clique("a"), podCliqueScalingGroups=[{"name": "g", "cliqueNames": ["a"]}]))
    assert set(body["spec"]["template"]) == {
        "cliques",
        "podCliqueScalingGroups",
        "terminationDelay",
        "headlessServiceConfig",
    }
    assert "autoScalingConfig" not in body["spec"]["template"]["cliques"][0]["spec"]
    assert body["spec"]["template"]["podCliqueScalingGroups"] == [{"name": "g", "cliqueNames": ["a"]}]


def test_argument_is_not_modified_and_unknown_fields_kept():
    body = changed(
        PLAIN, {"spec.later": [1], f"{CLIQUE}.spec.podSpec.later": {"x": None}, "status": {"y": 1}}
    )
    before = copy.deepcopy(body)
    done = default_set(body)
    assert body == before
    assert done["spec"]["later"] == [1]
    assert done["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["later"] == {"x": None}
    assert done["status"] is body["status"]


def test_complete_set_is_returned_unchanged():
    done = default_set(PLAIN)
    assert default_set(done) is done


def test_update_without_immutable_fields_keeps_stored_values():
    stored = default_set(bare(clique("a", 3, roleName="leader")))
    replaced = bare(clique("a", 5))
    del replaced["spec"]["template"]["cliques"][0]["spec"]["roleName"]
    spec = default_set(replaced, stored)["spec"]["template"]["cliques"][0]["spec"]
    assert (spec["replicas"], spec["minAvailable"], spec["roleName"]) == (5, 3, "leader")


def test_stored_pod_spec_without_defaults_stays_unchanged():
    """A default would change the template hash and replace the pods."""
    stored = bare(clique("a"))
    touched = changed(stored, {"metadata.labels": {"touched": "yes"}})
    done = default_set(touched, stored)
    assert done["spec"]["template"]["cliques"][0]["spec"]["podSpec"] == clique("a")["spec"]["podSpec"]


@pytest.mark.parametrize(
    "changes",
    [
        {"spec": None},
        {"spec": 5},
        {"spec.template": []},
        {"spec.template.cliques": {"a": 1}},
        {"spec.template.cliques": [None, 1, "a", []]},
        {CLIQUE: {"name": {}, "spec": {"replicas": "x", "podSpec": []}}},
        {f"{CLIQUE}.spec.replicas": True},
        {GROUP: {"replicas": [], "scaleConfig": {}}},
        {"metadata": "me"},
    ],
)
def test_values_of_wrong_type_are_kept(changes):
    body = changed(PLAIN, changes)
    done = default_set(body, body)
    for path, value in changes.items():
        assert at(done, path) == value
