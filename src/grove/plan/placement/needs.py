"""What pods need besides the resources of nodes: devices and volumes, by claims.

Neither is held by a nomination. Devices are counted, so that gangs do not take them from each other, and
volumes that are bound already decide on nodes. A condition of the PodGang says what is not protected.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from grove.api.conditions import ConditionType, GangReason
from grove.api.formats.name_list import name_list
from grove.api.meta import Condition
from grove.plan.conditions import new_condition
from grove.topology.placement.needs.devices import DeviceCatalog
from grove.topology.placement.needs.volumes import Terms


class KnownVolume(Struct, frozen=True):
    """The claim of a volume."""

    bound: bool
    nodes: Terms = None
    """The nodes that can use it."""
    bound_first: bool = False
    """Of a volume that is not bound: whether that does not wait for a pod to be scheduled. Until it is bound,
    the scheduler considers no node for its pods."""


class ClaimSources(Struct, frozen=True):
    """What the claims of pods refer to."""

    devices: DeviceCatalog | None = None
    """None: devices are not listed yet."""
    templates: Mapping[str, Mapping[str, Any]] | None = None
    """The specs of the claims that ResourceClaimTemplates describe, by name; None: not listed yet."""
    volumes: Mapping[str, KnownVolume] | None = None
    """The PersistentVolumeClaims that exist, by name; None: not listed yet."""
    storage_classes: Mapping[str, Terms] = {}
    """By StorageClass, the nodes for which it provisions volumes; empty name: the default class."""
    problem: str = ""
    """Why devices or volumes cannot be listed, such as a missing RBAC permission."""
    requested: bool = False
    """Whether pods get devices for extended resources that they request."""
    delay: str = ""
    """Why devices or volumes are not listed yet, such as an error of the API server."""
    claims: frozenset[str] | None = None
    """The names of ResourceClaims that pods name and that exist; None: not known."""


class PodNeeds(Struct, frozen=True):
    """What each pod of a clique needs besides the resources of nodes."""

    amounts: tuple[tuple[str, int], ...] = ()
    """The devices that are counted, by resource."""
    nodes: Terms = None
    """The nodes that can use its volumes."""
    classes: tuple[str, ...] = ()
    """The device classes that are counted."""
    uncounted: tuple[str, ...] = ()
    """Devices that are not counted, with the reason."""
    unbound: tuple[str, ...] = ()
    """Volumes that are not bound."""
    waits_for: str = ""
    """An object that does not exist, and without which the pods cannot be scheduled."""
    unbound_first: str = ""
    """A claim whose volume must be bound before the pods can be scheduled."""
    listed: bool = True
    """Whether everything is known that decides on nodes."""


def unprotected(needs: Iterable[PodNeeds]) -> Condition | None:
    """The condition of a gang whose pods need what nominations do not hold; None if they do not."""
    found = list(needs)
    classes = sorted({name for each in found for name in each.classes})
    uncounted = sorted({text for each in found for text in each.uncounted})
    unbound = sorted({name for each in found for name in each.unbound})
    said = []
    if classes:
        said.append(f"devices of class {name_list(classes)} are counted, but not held against other pods")
    if uncounted:
        said.append(f"not counted and not held: {name_list(uncounted)}")
    if unbound:
        said.append(f"not held until they are bound: {name_list(unbound)}")
    if not said:
        return None
    reason = GangReason.DEVICES_NOT_HELD if classes or uncounted else GangReason.VOLUMES_NOT_HELD
    message = f"{'; '.join(said)}. If another pod takes what is not held, the gang starts over"
    return new_condition(ConditionType.PLACEMENT_UNPROTECTED, True, reason, message[0].upper() + message[1:])
