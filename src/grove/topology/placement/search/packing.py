"""Places gangs that nearly fill a domain, without regard to preferred levels.

Each unit goes where it takes the least from the other units of the gang. Where one finds no room, a few
others are taken out and placed after it, in random order; what is not worse is kept, and so on. The random
numbers are the same in every run. A failure proves nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from grove import timing
from grove.topology.placement.index import ClusterIndex
from grove.topology.placement.model import Domain
from grove.topology.placement.search.bounds import Bounds
from grove.topology.placement.search.greedy import Areas, Greedy
from grove.topology.placement.search.state import State, Step, Work
from grove.topology.placement.units import Load, PlacementUnit, PodClass

Piece = PlacementUnit | Load
"""What is taken out and placed again as a whole."""


class Numbers:
    """Numbers without a pattern that matters, the same in every run: a linear congruential generator."""

    def __init__(self) -> None:
        self._last = 1

    def below(self, limit: int) -> int:
        self._last = (self._last * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        return (self._last >> 33) % limit

    def sample(self, values: list[int], count: int) -> list[int]:
        left = values.copy()
        return [left.pop(self.below(len(left))) for _ in range(min(count, len(left)))]


class Packer(Greedy):
    """Places units where they take the least from the other units of the gang."""

    def __init__(
        self,
        index: ClusterIndex,
        state: State,
        bounds: Bounds,
        work: Work,
        gang: PlacementUnit,
        domain: Domain,
        numbers: Numbers,
    ) -> None:
        super().__init__(index, state, bounds, work)
        self._numbers = numbers
        self._rivals: dict[int, list[tuple[float, PlacementUnit]]] = {}
        """By level, a unit of each kind that requires it, and how scarce the room for that kind is."""
        counts: dict[int, list[PlacementUnit]] = {}
        for unit in gang.walk():
            if unit.required is not None and unit.totals:
                counts.setdefault(unit.kind, []).append(unit)
        for unit, *others in counts.values():
            assert unit.required is not None
            scarcity = (1 + len(others)) / max(1, bounds.copies(unit, domain))
            self._rivals.setdefault(unit.required, []).append((scarcity, unit))

    def place(self, unit: PlacementUnit, areas: Areas) -> bool:
        """Place a unit into the best of a few domains, or leave the state as it was."""
        if unit.required is None or unit.required < len(areas[-1]) or not unit.totals:
            return super().place(unit, areas)
        start, least, chosen = len(self._state.steps), 0.0, list[Step]()
        trials = 1 if unit.parts else timing.PLACEMENT_TRIALS
        for domain in self._tightest_first(unit, areas[-1], unit.required):
            before = self._value(domain, unit.required)
            if self._fill(unit, (domain,)):
                loss = before - self._value(domain, unit.required)
                if not chosen or loss < least:
                    least, chosen = loss, self._state.steps[start:]
                self._undo(start)
                trials -= 1
                if not trials:
                    break
        for step in chosen:
            self._put(step.load, step.node, step.pods)
        return bool(chosen)

    def _tightest_first(self, unit: PlacementUnit, area: Domain, level: int) -> Iterator[Domain]:
        found = []
        for domain in self._index.subdomains(area, level):
            if unit.allows(domain) and self._may_fit(unit, domain):
                rooms = (self._room(each, domain) / need for each, need in self._bounds.demands(unit))
                found.append((sum(rooms), self._numbers.below(1 << 20), domain))
            self._work.spend(1)
        return (domain for *_, domain in sorted(found))

    def _value(self, domain: Domain, level: int) -> float:
        """What a domain is worth to the units that require its level: how many of each kind fit alone."""
        self._work.spend(timing.PLACEMENT_STEP_WORK)
        return sum(
            scarcity * min(self._room(each, domain) // need for each, need in self._bounds.demands(unit))
            for scarcity, unit in self._rivals[level]
        )

    def _place_inside(self, unit: PlacementUnit, areas: Areas) -> bool:
        return self._may_fit(unit, areas[-1]) and self._fill(unit, areas)

    def _break_cost(self, pod_class: PodClass, i: int) -> int:  # noqa: ARG002
        return 0  # room comes before whole domains here

    def _put(self, load: Load, i: int, count: int) -> None:
        self._work.spend(timing.PLACEMENT_STEP_WORK)
        self._state.put(load, i, count)


class Packing:
    """The repeated attempt in one domain of the gang."""

    def __init__(
        self,
        index: ClusterIndex,
        state: State,
        bounds: Bounds,
        work: Work,
        gang: PlacementUnit,
        domain: Domain,
    ) -> None:
        self._index, self._state, self._work, self._domain = index, state, work, domain
        self._numbers = Numbers()
        self._packer = Packer(index, state, bounds, work, gang, domain, self._numbers)
        while len(gang.parts) == 1 and not gang.loads:
            gang = gang.parts[0]
        self._pieces: list[Piece] = [*(part for part in gang.parts if part.totals), *gang.loads]
        self._placed: dict[int, list[Step]] = {}
        """The steps of each piece, by its position."""

    def run(self, rounds: int) -> bool:
        """Place the gang; the state holds it then."""
        sizes = [self._size(piece) for piece in self._pieces]
        everything = sorted(range(len(sizes)), key=lambda each: (-sizes[each], each))
        failed = self._insert(everything, self._placed)
        for _ in range(rounds):
            if not failed:
                break
            first = failed[self._numbers.below(len(failed))]
            out = self._neighbours(first)
            kept = {each: steps for each, steps in self._placed.items() if each not in out}
            self._rebuild(kept)
            left = self._insert([first, *out, *(each for each in failed if each != first)], kept)
            if sum(sizes[each] for each in left) <= sum(sizes[each] for each in failed):
                failed, self._placed = left, kept
        if not failed:
            self._rebuild(self._placed)
        return not failed

    def _insert(self, order: list[int], placed: dict[int, list[Step]]) -> list[int]:
        """Place pieces one after another; returns those that found no room."""
        failed = []
        for each in order:
            start, piece = len(self._state.steps), self._pieces[each]
            if isinstance(piece, PlacementUnit):
                done = self._packer.place(piece, (self._domain,))
            else:
                done = not self._packer.put(piece, piece.count, (self._domain,))
            if done:
                placed[each] = self._state.steps[start:]
            else:
                self._state.undo(start)
                failed.append(each)
        return failed

    def _neighbours(self, failed: int) -> list[int]:
        """A few pieces in random order: of one domain of the level that the failed piece requires, and
        sometimes one from anywhere."""
        piece, others = self._pieces[failed], list(self._placed)
        near = others
        if others and isinstance(piece, PlacementUnit) and piece.required is not None:
            where = self._where(others[self._numbers.below(len(others))], piece.required)
            near = [each for each in others if self._where(each, piece.required) == where]
        found = self._numbers.sample(near, 1 + self._numbers.below(3))
        if self._numbers.below(2):
            found += [each for each in self._numbers.sample(others, 1) if each not in found]
        return found

    def _where(self, placed: int, level: int) -> Domain | None:
        steps = self._placed[placed]
        return self._index.domain_at(steps[0].node, level) if steps else None

    def _rebuild(self, wanted: dict[int, list[Step]]) -> None:
        """Make the state hold these steps in this order; the first ones that it has are left alone."""
        steps, same = [step for each in wanted.values() for step in each], 0
        while same < min(len(steps), len(self._state.steps)) and steps[same] is self._state.steps[same]:
            same += 1
        self._state.undo(same)
        self._work.spend(timing.PLACEMENT_STEP_WORK * (1 + len(steps) - same))
        for step in steps[same:]:
            self._state.put(step.load, step.node, step.pods)
        done = iter(self._state.steps)
        for each, old in wanted.items():
            wanted[each] = [next(done) for _ in old]

    def _size(self, piece: Piece) -> float:
        """The largest share in what the cluster has free of a resource."""
        if isinstance(piece, Load):
            return self._packer.size(piece) * piece.count
        sums = self._state.view.sums.get((), ())
        return max((amount / max(1, sums[d]) for d, amount in piece.needs.items()), default=0.0)
