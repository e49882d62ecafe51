"""Computes template hashes, which distinguish pods of an old template from current ones.

They are computed from canonical JSON of what the user wrote, not from our types: a field that this version of
the operator does not know counts, and one that a later version adds to its types changes nothing. The form
does not count (see `desired.canonical`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import msgspec

from grove.api.types.podcliqueset import CliqueTemplate, PodCliqueSet
from grove.plan.desired.canonical import canonical
from grove.plan.desired.restarts import requests_hash, restart_requests

_LENGTH = 16
_DIGITS = frozenset("0123456789abcdef")


def template_hash(clique: CliqueTemplate, priority_class: str) -> str:
    """The hash of what pods of a clique are created from: labels, annotations and pod spec, with the set's
    priority class."""
    labels = tuple(sorted(clique.labels.items()))
    annotations = tuple(sorted(clique.annotations.items()))
    return _template_hash(labels, annotations, bytes(clique.spec.pod_spec), priority_class)


def generation_hash(workload: PodCliqueSet) -> str:
    """The hash of what all pods of a set are created from, and of the restarts that are requested; a change
    of it starts an update."""
    template = workload.spec.template
    return combine_hashes(
        [template_hash(clique, template.priority_class_name) for clique in template.cliques],
        requests_hash(restart_requests(workload.metadata.annotations)),
    )


def combine_hashes(template_hashes: Sequence[str], of_restarts: str = "") -> str:
    """The same, from the hashes of the set's cliques and of its restarts."""
    return _digest(msgspec.json.encode([*template_hashes, of_restarts] if of_restarts else template_hashes))


def is_own_hash(written: str | None) -> bool:
    """Whether this operator computed the hash: upstream's have another length or other characters."""
    return written is not None and len(written) == _LENGTH and _DIGITS.issuperset(written)


@lru_cache(maxsize=4096)
def spec_digest(raw: bytes) -> str:
    """Equal for all forms of one pod spec."""
    return _digest(msgspec.json.encode(canonical(msgspec.json.decode(raw)), order="sorted"))


@lru_cache(maxsize=4096)
def _template_hash(
    labels: tuple[tuple[str, str], ...],
    annotations: tuple[tuple[str, str], ...],
    pod_spec: bytes,
    priority: str,
) -> str:
    spec: dict[str, Any] = canonical(msgspec.json.decode(pod_spec))
    spec["priorityClassName"] = priority
    content = {"labels": dict(labels), "annotations": dict(annotations), "podSpec": spec}
    return _digest(msgspec.json.encode(content, order="sorted"))


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:_LENGTH]
