"""Reads the objects that are planned from the text of a file: one or several documents of YAML or JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from grove.api.types.clustertopology import ClusterTopology, ClusterTopologyBinding
from grove.api.types.kind import Kind
from grove.api.types.podcliqueset import PodCliqueSet
from grove.dynamo.api.common import ALPHA, BETA
from grove.dynamo.api.graph_deployment import DynamoGraphDeployment
from grove.kube import yaml_parser
from grove.kube.errors import KubeError
from grove.kube.yaml_parser import YamlError
from grove.rules import syntax

Body = dict[str, Any]
_KINDS: tuple[Kind, ...] = (
    ClusterTopology.KIND,
    ClusterTopologyBinding.KIND,
    DynamoGraphDeployment.KIND,
    PodCliqueSet.KIND,
)
_VERSIONS = {DynamoGraphDeployment.KIND: (BETA, ALPHA)}
"""The versions of kinds that have several."""
_METADATA = ("name", "namespace", "labels", "annotations")
"""What users write. The API server sets the rest, and drops what else and which status they write."""
_READ = "PodCliqueSets, DynamoGraphDeployments, ClusterTopologies and ClusterTopologyBindings"


class InputError(KubeError):
    """The input cannot be planned; the message names the document and the remedy."""


class Document(Struct, frozen=True):
    """One object of the input."""

    kind: Kind
    body: Body

    @property
    def version(self) -> str:
        """The version of the API that it is written in."""
        return str(self.body["apiVersion"]).rpartition("/")[2]

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
    _reject_repeated(documents, source)
    return sorted(documents, key=lambda each: each.kind.namespaced)


def _reject_repeated(documents: list[Document], source: str) -> None:
    found = Counter((each.kind.name, f"{each.namespace}/{each.name}".lstrip("/")) for each in documents)
    for (kind, name), count in found.items():
        if count > 1:
            raise InputError(f"{source}: {kind} {name} is there {count} times: keep one of them")


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
    name = f"{body['kind']} {metadata['name']}"
    versions = [f"{group}/{each}" for each in _VERSIONS.get(kind, (kind.version,))]
    if body["apiVersion"] not in versions:
        served = " or ".join(versions)
        raise InputError(f"{place}: {name}: apiVersion {body['apiVersion']!r} is not served: write {served}")
    for field in ("labels", "annotations"):
        if not _is_text_map(metadata.get(field)):
            raise InputError(f"{place}: {name}: metadata.{field} must be a map of text to text")
    kept = {key: metadata[key] for key in _METADATA if metadata.get(key) is not None}
    if kind.namespaced:
        kept["namespace"] = kept.get("namespace") or namespace
        for wrong in _namespace_errors(kept["namespace"]):
            raise InputError(f"{place}: {name}: metadata.namespace {kept['namespace']!r}: {wrong}")
    return Document(kind, {**{key: each for key, each in body.items() if key != "status"}, "metadata": kept})


def _is_text_map(found: object) -> bool:
    return found is None or (
        isinstance(found, dict) and all(isinstance(each, str) for pair in found.items() for each in pair)
    )


def _namespace_errors(namespace: object) -> Iterator[str]:
    if isinstance(namespace, str):
        yield from syntax.label(namespace)
    else:
        yield "must be text"
