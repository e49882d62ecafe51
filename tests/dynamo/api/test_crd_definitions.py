"""The CustomResourceDefinitions of Dynamo."""

from __future__ import annotations

from grove.api.crds import crd
from grove.dynamo.api import crd_definitions
from tools import generated


def fields(version, *path):
    found = version["schema"]["openAPIV3Schema"]
    for name in path:
        found = found["properties"][name]
    return set(found["properties"])


def test_each_version_has_its_own_fields():
    newer, older = crd_definitions.graph_deployments()["spec"]["versions"]
    assert (newer["name"], newer["storage"]) == ("v1beta1", True)
    assert (older["name"], older["storage"]) == ("v1alpha1", False)
    assert older["deprecated"]
    assert fields(newer, "spec") - fields(older, "spec") == {"components", "env"}
    assert fields(older, "spec") - fields(newer, "spec") == {"services", "envs", "pvcs"}
    assert fields(newer, "status") ^ fields(older, "status") == {"components", "services"}
    assert "clusterTopologyName" in fields(newer, "spec", "topologyConstraint")
    assert "topologyProfile" in fields(older, "spec", "topologyConstraint")


def test_definitions_leave_conversion_to_operator():
    """A definition that is applied again must not remove it: Helm and kubectl change only what is written."""
    assert not any("conversion" in each["spec"] for each in crd_definitions.all_definitions())


def test_short_name_and_columns():
    spec = crd_definitions.graph_deployments()["spec"]
    assert spec["names"]["shortNames"] == ["dgd"]
    columns = spec["versions"][0]["additionalPrinterColumns"]
    assert [column["name"] for column in columns] == ["Ready", "Backend", "Age"]


def test_unknown_fields_are_preserved_for_admission():
    older = crd_definitions.graph_deployments()["spec"]["versions"][1]
    spec = older["schema"]["openAPIV3Schema"]["properties"]["spec"]
    service = spec["properties"]["services"]["additionalProperties"]
    for part in (spec, service, spec["properties"]["topologyConstraint"]):
        assert part["x-kubernetes-preserve-unknown-fields"] is True


def test_dynamo_crds_are_not_among_grove_crds():
    ours = {each["metadata"]["name"] for each in crd_definitions.all_definitions()}
    assert ours == {
        "dynamographdeployments.nvidia.com",
        "dynamographdeploymentscalingadapters.nvidia.com",
        "dynamoworkermetadatas.nvidia.com",
    }
    assert not ours & {each["metadata"]["name"] for each in crd.all_definitions()}
    assert not any("nvidia" in path.name for path in generated.crds())


def test_crds_are_kept_when_release_is_uninstalled():
    for text in generated.dynamo_crds().values():
        assert "helm.sh/resource-policy: keep" in text
