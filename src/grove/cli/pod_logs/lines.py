"""Splits logs into lines with their times. Pure."""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec import Struct

from grove import timing


class LogLine(Struct, frozen=True, gc=False):
    """A line of a log."""

    at: float
    """Seconds since 1970; that of the line before if it has none of its own."""
    stamp: bytes
    """The time as the kubelet writes it."""
    text: bytes


class LineSplitter:
    """Splits the bytes of one log, which arrive in pieces that end anywhere, into lines with times."""

    def __init__(self) -> None:
        self._pending = bytearray()
        self._at = 0.0

    def feed(self, piece: bytes) -> list[LogLine]:
        """The lines that are complete now. A line without an end is split."""
        first, *rest = piece.split(b"\n")
        self._pending += first
        found: list[LogLine] = []
        if rest:
            found = [self._line(line) for line in (bytes(self._pending), *rest[:-1])]
            self._pending = bytearray(rest[-1])
        if len(self._pending) > timing.LOG_LINE:
            found += self.end()
        return found

    def end(self) -> list[LogLine]:
        """The last line, if it has no end."""
        rest, self._pending = bytes(self._pending), bytearray()
        return [self._line(rest)] if rest else []

    def _line(self, line: bytes) -> LogLine:
        stamp, _, text = line.partition(b" ")
        at = seconds_of(stamp)
        if at is None:  # written by a kubelet or a proxy, or the rest of a split line
            return LogLine(self._at, b"", line.removesuffix(b"\r"))
        self._at = at
        return LogLine(at, stamp, text.removesuffix(b"\r"))


def seconds_of(stamp: bytes) -> float | None:
    """The time of a stamp such as `2026-01-02T03:04:05.123456789Z`; None if it is something else."""
    if len(stamp) < len("2026-01-02T03:04:05Z") or stamp[4:5] != b"-":
        return None
    try:
        found = datetime.fromisoformat(stamp.decode("ascii"))
    except ValueError:
        return None
    return (found if found.tzinfo is not None else found.replace(tzinfo=UTC)).timestamp()
