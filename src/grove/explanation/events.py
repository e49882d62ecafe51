"""Events as they are read."""

from __future__ import annotations

from msgspec import field

from grove.api.meta import ObjectMeta
from grove.api.wire import Wire


class _Regarding(Wire, frozen=True):
    kind: str = ""
    name: str = ""
    namespace: str = ""
    uid: str = ""


class _Series(Wire, frozen=True):
    count: int = 0
    last_observed_time: str | None = None


class Event(Wire, frozen=True):
    """An event of events.k8s.io/v1, also one that was written with the older API."""

    metadata: ObjectMeta
    regarding: _Regarding = _Regarding()
    reason: str = ""
    note: str = ""
    type: str = ""
    event_time: str | None = None
    series: _Series | None = None
    last: str | None = field(name="deprecatedLastTimestamp", default=None)
    count: int = field(name="deprecatedCount", default=0)
