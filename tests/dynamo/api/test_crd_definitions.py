"""The CustomResourceDefinitions of the layer."""

from __future__ import annotations

from tools import generated

from grove.api.crds import crd
from grove.dynamo.api import crd_definitions


def test_both_versions_have_one_schema_and_need_no_conversion():
    spec = crd_definitions.graph_deployments()["spec"]
    newer, older = spec["versions"]
    assert (newer["name"], newer["storage"]) == ("v1beta1", True)
    assert (older["name"], older["storage"]) == ("v1alpha1", False)
    assert newer["schema"] == older["schema"]
    assert older["deprecated"]
    assert spec["conversion"] == {"strategy": "None"}


def test_short_name_and_columns():
    spec = crd_definitions.graph_deployments()["spec"]
    assert spec["names"]["shortNames"] == ["dgd"]
    columns = spec["versions"][0]["additionalPrinterColumns"]
    assert [column["name"] for column in columns] == ["Ready", "Backend", "Age"]


def test_what_is_not_declared_is_kept_for_admission_to_name():
    spec = crd_definitions.graph_deployments()["spec"]["versions"][0]["schema"]["openAPIV3Schema"][
        "properties"
    ]["spec"]
    service = spec["properties"]["services"]["additionalProperties"]
    for part in (spec, service, spec["properties"]["topologyConstraint"]):
        assert part["x-kubernetes-preserve-unknown-fields"] is True


def test_they_are_never_among_those_that_every_cluster_gets():
    ours = {each["metadata"]["name"] for each in crd_definitions.all_definitions()}
    assert ours == {
        "dynamographdeployments.nvidia.com",
        "dynamographdeploymentscalingadapters.nvidia.com",
        "dynamoworkermetadatas.nvidia.com",
    }
    assert not ours & {each["metadata"]["name"] for each in crd.all_definitions()}
    assert not any("nvidia" in path.name for path in generated.crds())


def test_they_stay_when_a_release_goes():
    for text in generated.dynamo_crds().values():
        assert "helm.sh/resource-policy: keep" in text
