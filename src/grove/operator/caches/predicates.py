"""Predicates on a change of an object, from `old` to `new`: which changes a watch reacts to.

`old` is None for an object that is created, or that existed at the start; `new` for one that is deleted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from grove.kube.cache.cache import Cache, HasMetadata

Object = HasMetadata | None
Predicate = Callable[..., bool]
"""Whether a watch reacts to an event: to a change of an object, or to something else that happened."""


def created(old: Object, _new: Object) -> bool:
    """The object is created."""
    return old is None


def spec_changed(old: Object, new: Object) -> bool:
    """The object is created or deleted, or its spec changed: the generation counts changes of the spec."""
    if old is None or new is None:
        return True
    before, after = old.metadata, new.metadata
    return before.generation != after.generation or before.uid != after.uid


def spec_or_metadata_changed(old: Object, new: Object) -> bool:
    """The object is created or deleted, or its spec or metadata changed."""
    return old is None or new is None or spec_changed(old, new) or metadata_changed(old, new)


def exists_with_other_spec_or_metadata(old: Object, new: Object) -> bool:
    """The object is created, or its spec or metadata changed; not if it is deleted."""
    return new is not None and spec_or_metadata_changed(old, new)


def only_status_changed(old: Object, new: Object) -> bool:
    """The object exists before and after, with the same spec and metadata."""
    return not spec_or_metadata_changed(old, new)


def metadata_changed(old: HasMetadata, new: HasMetadata) -> bool:
    """Labels, annotations, finalizers, owners, UID or the deletion timestamp changed."""
    return old.metadata.finalizers != new.metadata.finalizers or _other_metadata_changed(old, new)


def changed_beyond_finalizers(old: Object, new: Object) -> bool:
    """The object is created or deleted, or its spec or metadata other than finalizers changed."""
    return old is None or new is None or spec_changed(old, new) or _other_metadata_changed(old, new)


def _other_metadata_changed(old: HasMetadata, new: HasMetadata) -> bool:
    before, after = old.metadata, new.metadata
    return (
        before.uid != after.uid
        or before.deletion_timestamp != after.deletion_timestamp
        or before.labels != after.labels
        or before.annotations != after.annotations
        or before.owner_references != after.owner_references
    )


def status_changed_by_others(cache: Cache[Any]) -> Predicate:
    """Another writer, such as a former leader, changed the status. Only the operator writes it, and its own
    changes come with the replies of its writes."""

    def changed(old: Any, new: Any) -> bool:
        return old is not None and new is not None and not cache.applying_reply and old.status != new.status

    return changed
