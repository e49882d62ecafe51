"""Objects of dynamic resource allocation, with the fields by which devices of nodes are counted."""

from __future__ import annotations

from grove.api.meta import Interned, ObjectMeta
from grove.api.wire import Wire


class DeviceTaint(Interned, frozen=True):
    """A taint of a device."""

    effect: str = ""


class CountedDevice(Interned, frozen=True):
    """A device, of which only taints are read."""

    taints: tuple[DeviceTaint, ...] = ()


class DevicePool(Wire, frozen=True):
    """The pool that a slice belongs to; older generations are outdated."""

    name: str = ""
    generation: int = 0


class DeviceSliceSpec(Wire, frozen=True):
    """The devices of a driver on one node."""

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


class DeviceClass(Wire, frozen=True):
    """A DeviceClass."""

    metadata: ObjectMeta
    spec: DeviceClassSpec = DeviceClassSpec()


class AllocatedDevice(Interned, frozen=True):
    """A device that is allocated to a claim."""

    driver: str = ""
    pool: str = ""
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
    """A ResourceClaim, of which only the allocation is read."""

    metadata: ObjectMeta
    status: AllocatedClaimStatus = AllocatedClaimStatus()
