"""The CustomResourceDefinitions of Dynamo. They are separate from Grove's own: a cluster that runs Dynamo's
operator already has them, with a conversion webhook that ours must not replace."""

from __future__ import annotations

from typing import Any

from grove.api.crds import structural_schema
from grove.api.types.kind import Kind
from grove.dynamo.api.common import ALPHA, BETA, NVIDIA
from grove.dynamo.api.graph_deployment import DynamoGraphDeployment
from grove.dynamo.api.scaling_adapter import ScalingAdapter

Body = dict[str, Any]

_DEPRECATED = f"{NVIDIA}/{ALPHA} DynamoGraphDeployment is deprecated: use {NVIDIA}/{BETA}"
_SPEC_FIELDS = {BETA: ("services", "envs", "pvcs"), ALPHA: ("components", "env")}
_TOPOLOGY_NAMES = {BETA: "topologyProfile", ALPHA: "clusterTopologyName"}
"""By version, the fields that it does not have."""
_PRESERVE_UNKNOWN = {"x-kubernetes-preserve-unknown-fields": True}


def all_definitions() -> list[Body]:
    """All CRDs of Dynamo that the operator needs."""
    return [graph_deployments(), scaling_adapters(), worker_metadata()]


def graph_deployments() -> Body:
    """Unknown fields are preserved, so that admission can reject them by name instead of the API server
    pruning them silently. The operator adds the conversion webhook: its address is not known here."""
    kind = DynamoGraphDeployment.KIND
    newer, older = _both_versions(kind, {version: _graph_schema(version) for version in (BETA, ALPHA)})
    older |= {"deprecated": True, "deprecationWarning": _DEPRECATED}
    return _definition(kind.name, kind.plural, kind.short_names, [newer, older])


def _graph_schema(version: str) -> Body:
    """The schema without the fields of the other version."""
    body = structural_schema.of(DynamoGraphDeployment)
    spec, status = body["properties"]["spec"], body["properties"]["status"]["properties"]
    for name in _SPEC_FIELDS[version]:
        del spec["properties"][name]
    del spec["properties"]["topologyConstraint"]["properties"][_TOPOLOGY_NAMES[version]]
    if version == BETA:
        # As in Dynamo: clients that apply a part of a component own that part only.
        spec["properties"]["components"] |= {
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
        }
        spec["properties"]["components"]["items"]["required"] = ["name"]
    else:
        services = status["services"] = status.pop("components")
        services["additionalProperties"]["properties"]["componentName"] = {
            "type": "string",
            "description": "Name of that object. Deprecated: use componentNames.",
        }
    body["properties"]["spec"] = _with_open_objects(spec)
    return body


def scaling_adapters() -> Body:
    """One schema for both versions: an adapter names its component in the fields of both."""
    kind = ScalingAdapter.KIND
    schema = structural_schema.of(ScalingAdapter)
    versions = _both_versions(kind, {BETA: schema, ALPHA: schema})
    return _definition(kind.name, kind.plural, kind.short_names, versions)


def _both_versions(kind: Kind, schemas: dict[str, Body]) -> list[Body]:
    columns = [{"name": each.name, "type": each.type, "jsonPath": each.path} for each in kind.columns]
    subresources: Body = {"status": {}}
    if kind.scale:
        subresources["scale"] = {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": kind.scale.selector_path,
        }
    return [
        {
            "name": version,
            "served": True,
            "storage": version == BETA,
            "schema": {"openAPIV3Schema": schemas[version]},
            "subresources": subresources,
            "additionalPrinterColumns": columns,
        }
        for version in (BETA, ALPHA)
    ]


def worker_metadata() -> Body:
    """DynamoWorkerMetadata: workers of a graph publish in it what they serve, and frontends read it."""
    body = {
        "description": "What a worker of a DynamoGraphDeployment serves. Written by the worker.",
        "type": "object",
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": {"type": "object", **_PRESERVE_UNKNOWN, "description": "What the worker serves."},
        },
    }
    version = {"name": ALPHA, "served": True, "storage": True, "schema": {"openAPIV3Schema": body}}
    return _definition("DynamoWorkerMetadata", "dynamoworkermetadatas", ("dwm",), [version])


def _definition(name: str, plural: str, short_names: tuple[str, ...], versions: list[Body]) -> Body:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{NVIDIA}"},
        "spec": {
            "group": NVIDIA,
            "names": {
                "kind": name,
                "listKind": f"{name}List",
                "plural": plural,
                "singular": name.lower(),
                "shortNames": list(short_names),
            },
            "scope": "Namespaced",
            "versions": versions,
        },
    }


def _with_open_objects(body: Any) -> Any:
    """The schema with unknown fields preserved in every object."""
    if not isinstance(body, dict):
        return body
    opened = {key: value for key, value in body.items() if key not in ("properties", "items")}
    if "properties" in body:
        opened |= _PRESERVE_UNKNOWN
        opened["properties"] = {name: _with_open_objects(inner) for name, inner in body["properties"].items()}
    for word in ("items", "additionalProperties"):
        if word in body:
            opened[word] = _with_open_objects(body[word])
    return opened
