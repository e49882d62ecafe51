"""Many keys are woken a slice at a time, and the event loop goes on in between."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from grove.operator.caches.registry import Caches
from grove.operator.keys import Key, ReplicaKey, SetKey
from grove.operator.watches.enqueue_slices import SLICE, SlicedEnqueuer, replicas
from tests.plan.builders import a_set, read_set

SET = SetKey("ns", "wl")


def keys(count: int) -> Iterator[Key | None]:
    return (ReplicaKey("ns", "wl", index) if index % 2 else None for index in range(count))


async def test_few_keys_are_woken_at_once():
    woken: list[Key] = []
    SlicedEnqueuer(woken.append).start(SET, lambda: keys(SLICE - 1))
    assert len(woken) == SLICE // 2 - 1


async def test_many_keys_are_woken_slice_by_slice():
    woken: list[Key] = []
    SlicedEnqueuer(woken.append).start(SET, lambda: keys(3 * SLICE + 2))
    seen = [len(woken)]
    while seen[-1] < 3 * SLICE // 2 + 1:
        await asyncio.sleep(0)
        seen.append(len(woken))
    assert seen == [SLICE // 2, SLICE, 3 * SLICE // 2, 3 * SLICE // 2 + 1]


async def test_what_changes_meanwhile_is_woken_once_more_afterwards():
    woken: list[Key] = []
    slices = SlicedEnqueuer(woken.append)
    slices.start(SET, lambda: keys(2 * SLICE))
    slices.start(SET, lambda: iter(()))
    slices.start(SET, lambda: keys(2))
    for _turn in range(4):
        await asyncio.sleep(0)
    assert woken[-1] == ReplicaKey("ns", "wl", 1)
    slices.start(SET, lambda: keys(2))
    assert len(woken) == SLICE + 2, "it is over"


def test_of_a_set_above_the_limit_only_replicas_that_exist_are_woken():
    huge = read_set(a_set("a:1", replicas=2**31 - 1))
    assert list(replicas(Caches(), SET, huge)) == []
