"""What every Kubernetes object carries: metadata, owners, conditions.

The only part of the wire types that the runtime in `grove.kube` may know.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from grove.api.wire import Int64, Time, Wire, always, facet, text

_DNS_SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
CONDITION_TYPE = rf"^({_DNS_SUBDOMAIN}/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
CONDITION_REASON = r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"


class Interned(Wire, frozen=True):
    """Base of what many objects say in the same words: whoever keeps thousands of them keeps each once."""


class OwnerReference(Interned, frozen=True):
    """Who an object belongs to; the garbage collector deletes it with its owner."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(Wire, frozen=True):
    """The metadata that the product reads and writes; fields of others are left to the server."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    """When its grace ends, which began so many seconds before."""
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()


class Condition(Interned, frozen=True):
    """One fact about an object, with the moment it last changed."""

    type: Annotated[str, text(CONDITION_TYPE, longest=316)]
    """What the fact is about, in CamelCase."""
    status: Annotated[str, facet(enum=["True", "False", "Unknown"])]
    """Whether it holds: `True`, `False` or `Unknown`."""
    reason: Annotated[str, text(CONDITION_REASON, shortest=1, longest=1024)] = always("")
    """Why, as one word for programs."""
    message: Annotated[str, text(longest=32768)] = always("")
    """Why, as a sentence for people; may be empty."""
    observed_generation: Annotated[Int64, facet(minimum=0)] = 0
    """The generation of the spec that was judged."""
    last_transition_time: Time = always("")
    """When the status last changed from one value to another."""
