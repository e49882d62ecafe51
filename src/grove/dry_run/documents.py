"""Reads the objects that are planned from the text of a file: one or several documents of YAML or JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from grove.api.types.clustertopology import ClusterTopology, ClusterTopologyBinding
from grove.api.types.kind import Kind
from grove.api.types.podcliqueset import PodCliqueSet
from grove.dynamo.api.graph_deployment import DynamoGraphDeployment
from grove.kube import yaml_parser
from grove.kube.errors import KubeError
from grove.kube.yaml_parser import YamlError

Body = dict[str, Any]
_KINDS: tuple[Kind, ...] = (
    ClusterTopology.KIND,
    ClusterTopologyBinding.KIND,
    DynamoGraphDeployment.KIND,
    PodCliqueSet.KIND,
)
_READ = "PodCliqueSets, DynamoGraphDeployments, ClusterTopologies and ClusterTopologyBindings"


class InputError(KubeError):
    """The input cannot be planned; the message names the document and the remedy."""


class Document(Struct, frozen=True):
    """One object of the input."""

    kind: Kind
    body: Body

    @property
    def name(self) -> str:
        return str(self.body["metadata"]["name"])

    @property
    def namespace(self) -> str:
        """Empty for topologies, which have none."""
        return str(self.body["metadata"].get("namespace", "")) if self.kind.namespaced else ""


def read_documents(text: str, source: str, namespace: str) -> list[Document]:
    """The objects, topologies first: workloads refer to them. Objects without a namespace get the given one.
    Raises InputError."""
    try:
        found = yaml_parser.parse_all(text)
    except YamlError as problem:
        raise InputError(f"{source}: {problem}: write objects as YAML or JSON") from None
    bodies = list(_items(found))
    if not bodies:
        raise InputError(f"{source}: no objects: write at least one of {_READ}")
    documents = [_document(body, f"{source}: document {number}", namespace) for number, body in bodies]
    return sorted(documents, key=lambda each: each.kind.namespaced)


def _items(documents: list[object]) -> Iterator[tuple[int, object]]:
    """The objects with the numbers of their documents; a List stands for its items."""
    for number, document in enumerate(documents, start=1):
        items = (
            document.get("items") if isinstance(document, dict) and document.get("kind") == "List" else None
        )
        for item in items if isinstance(items, list) else [document]:
            yield number, item


def _document(body: object, place: str, namespace: str) -> Document:
    if not isinstance(body, dict) or not isinstance(body.get("kind"), str):
        raise InputError(f"{place}: not a Kubernetes object: write apiVersion, kind, metadata and spec")
    group = str(body.get("apiVersion") or "").partition("/")[0]
    kind = next((each for each in _KINDS if (each.group, each.name) == (group, body["kind"])), None)
    if kind is None:
        written = f"{body['kind']} of {body.get('apiVersion') or 'no apiVersion'}"
        raise InputError(f"{place}: {written}: grove plan reads {_READ} only")
    metadata = body.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str) or not metadata["name"]:
        raise InputError(f"{place}: {body['kind']} without metadata.name: name it")
    if kind.namespaced:
        metadata = {**metadata, "namespace": metadata.get("namespace") or namespace}
    return Document(kind, {**body, "metadata": metadata})
