"""Records how long writes of one class take, and decides the timeout of the next one.

Writes of one verb, resource and namespace pass the same admission webhooks, and are slow together. Their
latency because of a webhook says nothing about the load of the server, and must not slow down other writes.
So each class has a record of its own:

- `timeout`: short at first, so that a dead connection costs little; longer after each write that timed out,
  up to what the API server grants a webhook;
- `floor`: the lowest recent latency. Latency because of load comes on top of it;
- `is_slow`: whether the class takes so long that it gets slots of its own (see `write_limiter`).
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct

from grove import timing
from grove.logger import get_logger

log = get_logger("grove.kube.executor.executor")

CAUSE = "an admission webhook is slow, or the API server is overloaded"
_GERUNDS = {"create": "creating", "patch": "patching", "delete": "deleting", "deletecollection": "deleting"}


class WriteClass(NamedTuple):
    """Writes of one verb and resource in one namespace, which pass the same admission webhooks."""

    verb: str
    resource: str
    namespace: str

    def __str__(self) -> str:
        return f"{_GERUNDS.get(self.verb, self.verb)} {self.resource}"


ANY = WriteClass("", "", "")


class _Record(Struct):
    floor: float = 0.0
    timeout: float = timing.WRITE_FIRST_TIMEOUT
    reported: bool = False


class Latencies:
    """The latency records of all classes of writes; logs when one becomes slow and when it is fast again."""

    def __init__(self) -> None:
        self._records: dict[WriteClass, _Record] = {}

    def timeout(self, write_class: WriteClass) -> float:
        """The timeout of the next write, in seconds."""
        record = self._records.get(write_class)
        return timing.WRITE_FIRST_TIMEOUT if record is None else record.timeout

    def floor(self, write_class: WriteClass) -> float:
        """The lowest recent latency, 0 if none is known."""
        record = self._records.get(write_class)
        return 0.0 if record is None else record.floor

    def is_slow(self, write_class: WriteClass) -> bool:
        """Whether the next write is expected to be slow."""
        return self.floor(write_class) >= timing.SLOW_WRITE

    def record_reply(self, write_class: WriteClass, seconds: float) -> None:
        """A write was answered after so many seconds."""
        record = self._records.get(write_class)
        if record is None:
            record = self._add(write_class)
            record.floor = seconds
        else:
            record.floor = min(seconds, max(record.floor, 0.001) * timing.LATENCY_FLOOR_GROWTH)
        # A write that usually takes four seconds may take eight: the timeout is for replies that never come.
        # After a timeout it shrinks slowly: fast replies of other objects do not take it from a slow one.
        record.timeout = min(
            timing.WRITE_LONGEST_TIMEOUT,
            max(timing.WRITE_FIRST_TIMEOUT, 2 * record.floor, timing.LATENCY_DECAY * record.timeout),
        )
        if record.reported and seconds < timing.SLOW_WRITE:
            record.reported = False
            log.info(
                "writes are fast again", key=write_class.namespace, action=str(write_class), reason="answered"
            )

    def record_late(self, write_class: WriteClass) -> None:
        """A write has been in flight for `SLOW_WRITE` seconds: the next ones are expected to be slow, too."""
        record = self._records.get(write_class) or self._add(write_class)
        record.floor = max(record.floor, timing.SLOW_WRITE)

    def record_timeout(self, write_class: WriteClass, seconds: float) -> None:
        """A write timed out after so many seconds: the next one gets more time."""
        record = self._records.get(write_class) or self._add(write_class)
        record.floor = max(record.floor, min(seconds, timing.WRITE_LONGEST_TIMEOUT))
        record.timeout = min(timing.WRITE_LONGEST_TIMEOUT, max(record.timeout, 2 * seconds))
        self.report(write_class, seconds)

    def report(self, write_class: WriteClass, seconds: float) -> None:
        """Log that a write has taken so long already; once, until one is fast again."""
        record = self._records.get(write_class) or self._add(write_class)
        if not record.reported:
            record.reported = True
            reason = f"no answer in {seconds:g} s: {CAUSE}"
            log.warning("writes are slow", key=write_class.namespace, action=str(write_class), reason=reason)

    def _add(self, write_class: WriteClass) -> _Record:
        if len(self._records) >= timing.LATENCY_RECORDS:
            del self._records[next(iter(self._records))]
        record = self._records[write_class] = _Record()
        return record
