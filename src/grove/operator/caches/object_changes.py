"""Compares two states of an object, for event mappings: whether spec, metadata or only the status changed."""

from __future__ import annotations

from grove.kube.cache.cache import HasMetadata


def spec_revision(found: HasMetadata) -> tuple[str, int]:
    """UID and generation of an object."""
    return found.metadata.uid, found.metadata.generation


def changed(old: HasMetadata, new: HasMetadata) -> bool:
    """Whether spec or metadata changed. The generation counts changes of the spec only."""
    return old.metadata.generation != new.metadata.generation or metadata_changed(old, new)


def metadata_changed(old: HasMetadata, new: HasMetadata) -> bool:
    """Whether labels, annotations, finalizers, owners, UID or the deletion timestamp changed."""
    before, after = old.metadata, new.metadata
    return (
        before.uid != after.uid
        or before.deletion_timestamp != after.deletion_timestamp
        or before.labels != after.labels
        or before.annotations != after.annotations
        or before.finalizers != after.finalizers
        or before.owner_references != after.owner_references
    )
