"""Generates the CustomResourceDefinitions from the wire types.

The descriptions of Kubernetes' own types are left out (`kubectl explain pod.spec` has them), which makes the
largest CRD a quarter of upstream's. The CRDs are applied server-side all the same, which needs no annotation
with a copy of the whole document.
"""

from __future__ import annotations

from typing import Any

from grove.api.crds import structural_schema
from grove.api.types.kind import CATEGORY, Column, Kind
from grove.api.types.registry import KINDS, Served


def all_definitions() -> list[dict[str, Any]]:
    """One CustomResourceDefinition for each kind that Grove serves."""
    return [definition(served) for served in KINDS]


def definition(served: type[Served]) -> dict[str, Any]:
    """The CustomResourceDefinition of a kind."""
    kind: Kind = served.KIND
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": kind.crd_name},
        "spec": {
            "group": kind.group,
            "names": _names(kind),
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "versions": [_version(kind, served)],
        },
    }


def _names(kind: Kind) -> dict[str, Any]:
    return {
        "kind": kind.name,
        "listKind": f"{kind.name}List",
        "plural": kind.plural,
        "singular": kind.name.lower(),
        "shortNames": list(kind.short_names),
        "categories": [CATEGORY],
    }


def _version(kind: Kind, served: type[Served]) -> dict[str, Any]:
    subresources: dict[str, Any] = {"status": {}}
    if kind.scale:
        subresources["scale"] = {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": kind.scale.selector_path,
        }
    return {
        "name": kind.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": structural_schema.of(served)},
        "subresources": subresources,
        "additionalPrinterColumns": [_column(column) for column in kind.columns],
    }


def _column(column: Column) -> dict[str, Any]:
    shown: dict[str, Any] = {"name": column.name, "type": column.type, "jsonPath": column.path}
    return shown | {"priority": column.priority} if column.priority else shown
