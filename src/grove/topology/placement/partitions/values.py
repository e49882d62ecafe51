"""The combinations of values that partitions may have, as far as sums over nodes allow them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from grove.topology.placement.model import Problem
from grove.topology.placement.partitions.interchangeable import predecessors
from grove.topology.placement.partitions.rooms import PartitionRooms

Values = tuple[str, ...]
"""By partition, the value of its label; empty: any node will do."""
Options = Mapping[int, Sequence[str]]
"""By partition that gets a value, the values that are tried."""


def combinations(
    problem: Problem, rooms: PartitionRooms, options: Options, spend: Callable[[int], bool]
) -> Iterator[Values]:
    """One value for each partition with options. The largest partitions are decided on first. Of combinations
    that differ only by an exchange among interchangeable partitions, one is tried. `spend` counts the steps,
    and says whether there may be more."""
    possible = {
        number: tuple(value for value in values if rooms.by_value[number][value].enough)
        for number, values in options.items()
    }
    if not all(possible.values()) or _are_too_many(problem, rooms, possible):
        return
    order = sorted(possible, key=lambda number: (-rooms.exclusive_pods(number), number))
    if order:
        yield from _in_order(problem, rooms, possible, order, spend)
    else:
        yield ("",) * len(problem.partitions)


def _in_order(
    problem: Problem,
    rooms: PartitionRooms,
    possible: Options,
    order: Sequence[int],
    spend: Callable[[int], bool],
) -> Iterator[Values]:
    before = predecessors(problem, order, {number: tuple(possible[number]) for number in order})
    chosen = [""] * len(problem.partitions)
    taken: Counter[tuple[str, str]] = Counter()
    sizes = {number: rooms.exclusive_pods(number) for number in order}
    next_position = dict.fromkeys(order, 0)
    depth = 0
    while depth >= 0:
        number = order[depth]
        key, pods, values = problem.partitions[number].key, sizes[number], possible[number]
        if chosen[number]:
            taken[key, chosen[number]] -= pods
            chosen[number] = ""
        for position in range(next_position[number], len(values)):
            if not spend(1):
                return
            place = key, values[position]
            if taken[place] + pods <= rooms.hosts[place] or not pods:
                next_position[number] = position + 1
                chosen[number] = values[position]
                taken[place] += pods
                break
        if not chosen[number]:
            depth -= 1
        elif depth + 1 == len(order):
            yield tuple(chosen)
        else:
            depth += 1
            number = order[depth]
            next_position[number] = next_position[before[number]] - 1 if number in before else 0


def _are_too_many(problem: Problem, rooms: PartitionRooms, possible: Options) -> bool:
    """Whether nodes do not suffice for all partitions of some size and larger ones: nodes with one value have
    room for as many of them as their number contains the size."""
    by_key: dict[str, list[int]] = {}
    for number in possible:
        if rooms.exclusive_pods(number):
            by_key.setdefault(problem.partitions[number].key, []).append(number)
    for key, numbers in by_key.items():
        hosts = {value: rooms.hosts[key, value] for number in numbers for value in possible[number]}
        sizes = [rooms.exclusive_pods(number) for number in numbers]
        if sum(sizes) > sum(hosts.values()):
            return True
        for size in set(sizes):
            if sum(each >= size for each in sizes) > sum(count // size for count in hosts.values()):
                return True
    return False
