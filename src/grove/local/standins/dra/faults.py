"""Faults of the driver, injected by annotations of its DeviceClass for channels, or of one domain."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from grove.fabrics.nvidia import CHANNEL_CLASS
from grove.fabrics.provider import Domain
from grove.kube.cache.cache import Cache
from grove.kube.client.decoding import Object
from grove.kube.client.resource import DEVICE_CLASSES
from grove.local.standins.dra import objects


class DriverFaults:
    """Reads the annotations. Those of the DeviceClass reach domains that do not exist yet."""

    def __init__(self) -> None:
        self.cache: Cache[Object] = Cache(DEVICE_CLASSES, Object)
        self._seen: dict[str, float] = {}
        """The time at which a domain was first seen, by its UID."""

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call `listener` when the annotations of the DeviceClass change."""

        def on_class(old: Object | None, new: Object | None) -> None:
            found = new or old
            assert found is not None
            before = old.metadata.annotations if old is not None else {}
            if found.metadata.name == CHANNEL_CLASS and found.metadata.annotations != before:
                listener()

        self.cache.subscribe(on_class)

    @property
    def controller_dead(self) -> bool:
        """Whether the driver's controller does nothing. Nodes publish their channels all the same."""
        return objects.DEAD_CONTROLLER in self._of_driver()

    def template_due(self, domain: Domain) -> float | None:
        """When the claim template of a domain is created, by the loop's clock; None for never."""
        annotations = {**self._of_driver(), **domain.metadata.annotations}
        if objects.SKIP_TEMPLATE in annotations:
            return None
        seen = self._seen.setdefault(domain.metadata.uid, asyncio.get_running_loop().time())
        return seen + float(annotations.get(objects.TEMPLATE_DELAY, 0.0))

    def _of_driver(self) -> dict[str, str]:
        found = self.cache.get("", CHANNEL_CLASS)
        return dict(found.metadata.annotations) if found is not None else {}
