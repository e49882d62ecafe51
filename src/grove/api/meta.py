"""What every Kubernetes object carries: metadata, owners, conditions.

The only part of the wire types that the runtime in `grove.kube` may know.
"""

from __future__ import annotations

from msgspec import Struct


class OwnerReference(Struct, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    """Who an object belongs to; the garbage collector deletes it with its owner."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(Struct, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    """The metadata that the product reads and writes; fields of others are left to the server."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()


class Condition(Struct, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    """metav1.Condition: one fact about an object, with the moment it last changed."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    observed_generation: int = 0
    last_transition_time: str = ""
