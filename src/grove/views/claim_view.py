"""Views of shared ResourceClaims: the object that a claim belongs to, and how many pods use it. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from grove.api.naming import labels
from grove.api.types.kubernetes_objects import ResourceClaim

_PART_LABELS = (labels.SET_REPLICA, labels.GROUP, labels.GROUP_REPLICA, labels.CLIQUE)
NamespacedName = tuple[str, str]


class View(Struct, frozen=True, rename="camel"):
    """Base of all views."""


class ClaimView(View, frozen=True):
    """A claim that several pods may share, and for how many pods it is reserved."""

    name: str
    state: str
    pods: int = 0


class ClaimIndex:
    """Finds claims by the object that they belong to."""

    def __init__(self, found: Iterable[ResourceClaim]) -> None:
        self._known: dict[tuple[NamespacedName, frozenset[tuple[str, str]]], list[ResourceClaim]] = {}
        for claim in found:
            carried = claim.metadata.labels
            if carried.get(labels.COMPONENT) == labels.ComponentLabel.RESOURCE_CLAIM:
                part = frozenset((key, carried[key]) for key in _PART_LABELS if key in carried)
                place = (claim.metadata.namespace, carried.get(labels.PART_OF, ""))
                self._known.setdefault((place, part), []).append(claim)

    def of(self, place: NamespacedName, **part: str) -> tuple[ClaimView, ...]:
        """The claims of a set, or of a part of it, which the keywords `replica`, `group`, `group_replica` and
        `clique` select."""
        keys = dict(zip(("replica", "group", "group_replica", "clique"), _PART_LABELS, strict=True))
        wanted = frozenset((keys[name], value) for name, value in part.items())
        found = self._known.get((place, wanted), ())
        return tuple(map(_claim, sorted(found, key=lambda one: _natural(one))))


def _claim(claim: ResourceClaim) -> ClaimView:
    return ClaimView(claim.metadata.name, claim_state(claim), len(claim.status.reserved_for))


def claim_state(claim: ResourceClaim) -> str:
    """The state of a claim, as one word."""
    if claim.metadata.deletion_timestamp is not None:
        return "terminating"
    if bytes(claim.status.allocation) in (b"", b"null"):
        return "pending"
    return "reserved" if claim.status.reserved_for else "allocated"


def _natural(claim: ResourceClaim) -> tuple[int, str]:
    """Sorts by index, so that 10 comes after 9; then by name."""
    index = claim.metadata.labels.get(labels.POD_INDEX, "")
    return int(index) if index.isdecimal() else -1, claim.metadata.name
