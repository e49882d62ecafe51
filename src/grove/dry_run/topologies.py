"""The topologies that documents refer to, and that none of them defines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from grove.api.types.clustertopology import ClusterTopology, ClusterTopologyBinding
from grove.api.types.podcliqueset import PodCliqueSet
from grove.dry_run.documents import Document
from grove.dynamo.admission.topology_rules import NAMES
from grove.rules.podcliqueset import validation

_TOPOLOGIES = (ClusterTopology.KIND, ClusterTopologyBinding.KIND)


def unknown_topologies(documents: Iterable[Document]) -> tuple[str, ...]:
    """Their names, sorted: a described cluster has them all."""
    listed = list(documents)
    defined = {each.name for each in listed if each.kind in _TOPOLOGIES}
    named = {name for each in listed if each.kind not in _TOPOLOGIES for name in named_topologies(each)}
    return tuple(sorted(named - defined))


def named_topologies(document: Document) -> Iterator[str]:
    """The topologies that a workload names."""
    if document.kind == PodCliqueSet.KIND:
        yield from validation.topologies_named(document.body)
        return
    spec: Any = document.body.get("spec")
    constraint = spec.get("topologyConstraint") if isinstance(spec, dict) else None
    values = [constraint.get(key) for key in NAMES] if isinstance(constraint, dict) else []
    yield from (each for each in values if isinstance(each, str) and each)
