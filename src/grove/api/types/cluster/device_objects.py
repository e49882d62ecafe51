"""Objects of dynamic resource allocation, with the fields by which devices of nodes are counted."""

from __future__ import annotations

from msgspec import field

from grove.api.meta import Interned, ObjectMeta
from grove.api.wire import Wire


class DeviceTaint(Interned, frozen=True):
    """A taint of a device."""

    effect: str = ""


class DeviceAttribute(Interned, frozen=True):
    """The value of an attribute, in the field of its type."""

    text: str | None = field(default=None, name="string")
    number: int | None = field(default=None, name="int")
    flag: bool | None = field(default=None, name="bool")

    @property
    def value(self) -> str | int | bool | None:
        """The value; None for types that no selector is understood to compare."""
        return next((each for each in (self.text, self.number, self.flag) if each is not None), None)


class CountedDevice(Interned, frozen=True):
    """A device, with the attributes by which device classes select."""

    name: str = ""
    attributes: dict[str, DeviceAttribute] = field(default_factory=dict)
    """By `<domain>/<name>`, or by `<name>` in the domain of the driver."""
    taints: tuple[DeviceTaint, ...] = ()
    allow_multiple_allocations: bool = False


class DevicePool(Wire, frozen=True):
    """The pool that a slice belongs to; older generations are outdated."""

    name: str = ""
    generation: int = 0


class DeviceSliceSpec(Wire, frozen=True):
    """The devices of a driver, on one node if it is named."""

    driver: str = ""
    node_name: str = ""
    pool: DevicePool = DevicePool()
    devices: tuple[CountedDevice, ...] = ()


class DeviceSlice(Wire, frozen=True):
    """A ResourceSlice."""

    metadata: ObjectMeta
    spec: DeviceSliceSpec = DeviceSliceSpec()


class CelSelector(Wire, frozen=True):
    """A CEL expression."""

    expression: str = ""


class DeviceSelector(Wire, frozen=True):
    """Which devices belong to a class."""

    cel: CelSelector = CelSelector()


class DeviceClassSpec(Wire, frozen=True):
    """The selectors of a class."""

    selectors: tuple[DeviceSelector, ...] = ()
    extended_resource_name: str = ""
    """The resource by which pods request its devices without a claim."""


class DeviceClass(Wire, frozen=True):
    """A DeviceClass."""

    metadata: ObjectMeta
    spec: DeviceClassSpec = DeviceClassSpec()


class AllocatedDevice(Interned, frozen=True):
    """A device that is allocated to a claim."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool = False


class AllocatedDevices(Wire, frozen=True):
    """All devices of a claim."""

    results: tuple[AllocatedDevice, ...] = ()


class Allocation(Wire, frozen=True):
    """What is allocated to a claim."""

    devices: AllocatedDevices = AllocatedDevices()


class ClaimingPod(Wire, frozen=True):
    """A pod that a claim is reserved for."""

    name: str = ""


class AllocatedClaimStatus(Wire, frozen=True):
    """The allocation of a claim, and the pods that it is reserved for."""

    allocation: Allocation | None = None
    reserved_for: tuple[ClaimingPod, ...] = ()


class AllocatedClaim(Wire, frozen=True):
    """A ResourceClaim, of which only the allocation is read, and whether the scheduler created it for
    extended resources of a pod."""

    metadata: ObjectMeta
    status: AllocatedClaimStatus = AllocatedClaimStatus()
