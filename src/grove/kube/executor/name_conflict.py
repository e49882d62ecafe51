"""AlreadyExists is a question: whose is the object that has the name? Answered here, from metadata alone.

Identity is the UID of the controller, never a name. An object with our controller is ours; one whose
controller has the same kind and name but another UID belongs to an earlier life of our parent, and the
garbage collector will take it; anything else is somebody else's, terminating or not: its events need not
reach us, so that only trying again later helps.
"""

from __future__ import annotations

from enum import StrEnum

from grove.api.meta import ObjectMeta, OwnerReference
from grove.kube.errors import KubeError


class NameHolder(StrEnum):
    """Who has the name that we wanted."""

    OWN = "own"
    TERMINATING = "terminating"
    OTHER = "other"


class NameConflict(KubeError):
    """The name belongs to an object that is not ours, and we do not touch it."""


def name_holder(wanted: ObjectMeta, existing: ObjectMeta) -> NameHolder:
    """Whose the existing object is, seen from the one that we wanted to create."""
    ours, theirs = controller(wanted), controller(existing)
    if _key(ours) != _key(theirs):
        return NameHolder.OTHER
    same_owner_uid = ours is None or theirs is None or ours.uid == theirs.uid
    return NameHolder.OWN if same_owner_uid and not existing.deletion_timestamp else NameHolder.TERMINATING


def name_conflict_error(what: str, existing: ObjectMeta) -> NameConflict:
    """The error that says who is in the way and what to do."""
    owner = controller(existing)
    by = f"one that belongs to {owner.kind} {owner.name}" if owner else "one that belongs to nobody"
    return NameConflict(f"{what}: the name is taken by {by}; delete that object or rename the workload")


def controller(metadata: ObjectMeta) -> OwnerReference | None:
    """The one owner that controls the object."""
    return next((owner for owner in metadata.owner_references if owner.controller), None)


def _key(owner: OwnerReference | None) -> tuple[str, str, str] | None:
    """Kind and name without the version, since an owner may be written in any version of its group."""
    if owner is None:
        return None
    return owner.api_version.rpartition("/")[0], owner.kind, owner.name
