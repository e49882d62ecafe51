"""What all Kubernetes objects have in common: metadata, owner references and conditions.

The only wire types that the runtime in `grove.kube` may import.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from grove.api.wire import Int64, Time, Wire, always, facet, text

_DNS_SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
CONDITION_TYPE = rf"^({_DNS_SUBDOMAIN}/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
CONDITION_REASON = r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"


class Interned(Wire, frozen=True):
    """Base of values that are equal in many objects: caches keep one copy of each."""


class OwnerReference(Interned, frozen=True):
    """An owner of an object; the garbage collector deletes the object after its owners."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(Wire, frozen=True):
    """The metadata that the operator reads and writes. Other metadata fields are left unchanged."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    """When the grace period ends: `deletion_grace_period_seconds` after the object was deleted."""
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()


class Condition(Interned, frozen=True):
    """One condition of an object."""

    type: Annotated[str, text(CONDITION_TYPE, longest=316)]
    """The type of the condition, in CamelCase."""
    status: Annotated[str, facet(enum=["True", "False", "Unknown"])]
    """Whether the condition holds: `True`, `False` or `Unknown`."""
    reason: Annotated[str, text(CONDITION_REASON, shortest=1, longest=1024)] = always("")
    """The reason for the status, as one CamelCase word for programs."""
    message: Annotated[str, text(longest=32768)] = always("")
    """The reason for the status, as a sentence for people; may be empty."""
    observed_generation: Annotated[Int64, facet(minimum=0)] = 0
    """The generation of the spec that the condition was computed from."""
    last_transition_time: Time = always("")
    """When the status of the condition last changed."""
