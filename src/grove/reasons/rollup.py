"""The reasons of many gangs as one line: the first of all, and how many others wait for what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

from grove import timing
from grove.reasons.codes import ReasonCode, rank
from grove.reasons.model import WaitReason, first


class Rollup(Struct, frozen=True, gc=False):
    """What many gangs wait for."""

    first: WaitReason | None = None
    """The reason of the gang that is shown."""
    counts: tuple[tuple[ReasonCode, int], ...] = ()
    """How many gangs wait for what, by the first reason of each; what keeps most from happening first."""

    @property
    def line(self) -> str:
        """The first reason, and what the other gangs wait for."""
        assert self.first is not None
        return self.first.line + self._others(self.first.code)

    @property
    def stable_line(self) -> str:
        """The same without numbers that change while the reason lasts."""
        assert self.first is not None
        return self.first.stable_line

    def _others(self, shown: ReasonCode) -> str:
        left = {code: count - (code is shown) for code, count in self.counts}
        named = [f"{count} {code}" for code, count in left.items() if count]
        if not named:
            return ""
        gangs = sum(left.values())
        more = f" and {len(named) - timing.NAMES_SHOWN} more" if len(named) > timing.NAMES_SHOWN else ""
        kinds = ", ".join(named[: timing.NAMES_SHOWN])
        return f"; and {gangs} more gang{'s' * (gangs > 1)}: {kinds}{more}"


NOTHING = Rollup()


def of_gangs(reasons: Iterable[WaitReason]) -> Rollup:
    """The roll-up of gangs that wait, by the first reason of each."""
    return combined(Rollup(each, ((each.code, 1),)) for each in reasons)


def combined(parts: Iterable[Rollup]) -> Rollup:
    """The roll-up of several, such as those of all replicas of a set."""
    known = [each for each in parts if each.first is not None]
    if len(known) <= 1:
        return known[0] if known else NOTHING
    counts: Counter[ReasonCode] = Counter()
    for each in known:
        counts.update(dict(each.counts))
    ordered = tuple(sorted(counts.items(), key=lambda each: rank(each[0])))
    return Rollup(first(each.first for each in known if each.first is not None), ordered)
