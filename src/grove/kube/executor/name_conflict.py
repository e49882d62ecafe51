"""Decides, after AlreadyExists, which owner the existing object belongs to, from metadata alone.

Identity is the UID of the controller owner, never a name:

- same controller: the object is the operator's own;
- a controller of the same kind and name with another UID: the object belongs to a deleted predecessor of the
  parent, and the garbage collector will delete it;
- anything else belongs to another owner, terminating or not: the caches may not receive its events, so that
  only a later retry helps.
"""

from __future__ import annotations

from enum import StrEnum

from grove.api.meta import ObjectMeta, OwnerReference
from grove.kube.errors import KubeError


class NameHolder(StrEnum):
    """The owner of the object with the wanted name."""

    OWN = "own"
    TERMINATING = "terminating"
    OTHER = "other"


class NameConflict(KubeError):
    """An object of another owner has the name; it is not changed."""


def name_holder(wanted: ObjectMeta, existing: ObjectMeta) -> NameHolder:
    """The owner of the existing object, compared with that of the one that was to be created."""
    wanted_owner, existing_owner = controller(wanted), controller(existing)
    if _key(wanted_owner) != _key(existing_owner):
        return NameHolder.OTHER
    same_uid = wanted_owner is None or existing_owner is None or wanted_owner.uid == existing_owner.uid
    return NameHolder.OWN if same_uid and not existing.deletion_timestamp else NameHolder.TERMINATING


def name_conflict_error(what: str, existing: ObjectMeta) -> NameConflict:
    """The error that names the owner of the existing object and the remedy."""
    owner = controller(existing)
    by = f"an object of {owner.kind} {owner.name}" if owner else "an object without a controller"
    return NameConflict(f"{what}: the name is taken by {by}; delete that object or rename the workload")


def controller(metadata: ObjectMeta) -> OwnerReference | None:
    """The owner reference with `controller: true`, None if there is none."""
    return next((owner for owner in metadata.owner_references if owner.controller), None)


def _key(owner: OwnerReference | None) -> tuple[str, str, str] | None:
    """Kind and name without the version, since an owner may be written in any version of its group."""
    if owner is None:
        return None
    return owner.api_version.rpartition("/")[0], owner.kind, owner.name
