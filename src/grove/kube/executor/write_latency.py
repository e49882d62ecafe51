"""How long writes of one sort take, and for how long the next one is waited for.

Writes of one verb, resource and namespace pass the same admission webhooks, and are slow together. What they
take because of a webhook says nothing about the load of the server, and must not slow down the others. So
each sort has a record of its own:

- `timeout`: short at first, so that a dead connection costs little; longer after each write that ran out of
  time, up to what the API server grants a webhook;
- `floor`: the lowest latency of late. What load adds comes on top of it;
- `slow`: whether the sort takes so long that it is sent apart from all others (see `limiter`).
"""

from __future__ import annotations

from typing import NamedTuple

import structlog
from msgspec import Struct

log = structlog.get_logger("grove.kube.executor.executor")

SLOW = 1.0  # seconds in flight after which a write no longer takes a slot from others
REPORTED = 3.0  # seconds in flight after which it is reported
FIRST_TIMEOUT = 5.0
LONGEST_TIMEOUT = 30.0
_RISE = 1.05  # by how much the floor rises with each reply above it: it forgets within a hundred replies
_MOST = 4096  # records that are kept; the oldest goes first
CAUSE = "an admission webhook may be slow"
_GERUNDS = {"create": "creating", "patch": "patching", "delete": "deleting", "deletecollection": "deleting"}


class WriteClass(NamedTuple):
    """Writes that are alike."""

    verb: str
    resource: str
    namespace: str

    def __str__(self) -> str:
        return f"{_GERUNDS.get(self.verb, self.verb)} {self.resource}"


ANY = WriteClass("", "", "")


class _Record(Struct):
    floor: float = 0.0
    timeout: float = FIRST_TIMEOUT
    reported: bool = False


class Latencies:
    """Knows the records of all sorts of writes; logs when one becomes slow and when it is quick again."""

    def __init__(self) -> None:
        self._records: dict[WriteClass, _Record] = {}

    def timeout(self, sort: WriteClass) -> float:
        """For how long the next write may take."""
        record = self._records.get(sort)
        return FIRST_TIMEOUT if record is None else record.timeout

    def floor(self, sort: WriteClass) -> float:
        """The lowest latency of late, 0 if nothing is known."""
        record = self._records.get(sort)
        return 0.0 if record is None else record.floor

    def is_slow(self, sort: WriteClass) -> bool:
        """Whether the next write is expected to be slow."""
        return self.floor(sort) >= SLOW

    def answered(self, sort: WriteClass, seconds: float) -> None:
        """A write was answered."""
        record = self._records.get(sort)
        if record is None:
            record = self._add(sort)
            record.floor = seconds
        else:
            record.floor = min(seconds, max(record.floor, 0.001) * _RISE)
        # What takes four seconds may well take eight: a timeout is for what never comes.
        record.timeout = min(LONGEST_TIMEOUT, max(FIRST_TIMEOUT, 2 * record.floor))
        if record.reported and seconds < SLOW:
            record.reported = False
            log.info("writes are quick again", key=sort.namespace, action=str(sort), reason="answered")

    def late(self, sort: WriteClass) -> None:
        """A write has been in flight for `SLOW` seconds: those that follow are expected to be slow, too."""
        record = self._records.get(sort) or self._add(sort)
        record.floor = max(record.floor, SLOW)

    def ran_out(self, sort: WriteClass, seconds: float) -> None:
        """A write was not answered within its time: the next one gets more."""
        record = self._records.get(sort) or self._add(sort)
        record.floor = max(record.floor, min(seconds, LONGEST_TIMEOUT))
        record.timeout = min(LONGEST_TIMEOUT, max(record.timeout, 2 * seconds))
        self.report(sort, seconds)

    def report(self, sort: WriteClass, seconds: float) -> None:
        """A write has taken that long already. Logged once, until one is quick again."""
        record = self._records.get(sort) or self._add(sort)
        if not record.reported:
            record.reported = True
            reason = f"no answer in {seconds:g} s: {CAUSE}"
            log.warning("writes are slow", key=sort.namespace, action=str(sort), reason=reason)

    def _add(self, sort: WriteClass) -> _Record:
        if len(self._records) >= _MOST:
            del self._records[next(iter(self._records))]
        record = self._records[sort] = _Record()
        return record
