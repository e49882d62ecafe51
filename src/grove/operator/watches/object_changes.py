"""What has changed between two states of an object."""

from __future__ import annotations

from grove.kube.cache.cache import HasMetadata


def spec_revision(found: HasMetadata) -> tuple[str, int]:
    """Which object it is, and which of its specs."""
    return found.metadata.uid, found.metadata.generation


def changed(old: HasMetadata, new: HasMetadata) -> bool:
    """The generation counts changes of the spec; of the metadata, nobody counts the changes."""
    return old.metadata.generation != new.metadata.generation or metadata_changed(old, new)


def metadata_changed(old: HasMetadata, new: HasMetadata) -> bool:
    """Whether anything around spec and status has changed."""
    before, after = old.metadata, new.metadata
    return (
        before.uid != after.uid
        or before.deletion_timestamp != after.deletion_timestamp
        or before.labels != after.labels
        or before.annotations != after.annotations
        or before.finalizers != after.finalizers
        or before.owner_references != after.owner_references
    )
