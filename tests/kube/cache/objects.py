"""Builders for objects of which only the metadata matter."""

from __future__ import annotations

from collections.abc import Mapping

from grove.api.meta import ObjectMeta
from grove.kube.client.client import Object


def thing(
    name: str,
    version: int,
    uid: str = "",
    *,
    namespace: str = "n",
    terminating: bool = False,
    labels: Mapping[str, str] | None = None,
) -> Object:
    """An object of which only identity, version and labels matter. Its UID is its name unless given."""
    return Object(
        ObjectMeta(
            name=name,
            namespace=namespace,
            uid=uid or name,
            resource_version=str(version),
            deletion_timestamp="2026-01-01T00:00:00Z" if terminating else None,
            labels=dict(labels or {}),
        )
    )
