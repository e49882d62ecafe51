"""Many keys are enqueued in slices, with turns of the event loop in between."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from grove import timing
from grove.operator.caches.registry import Caches
from grove.operator.keys import Key, ReplicaKey, SetKey
from grove.operator.watches.enqueue_slices import SlicedEnqueuer, replicas
from tests.plan.builders import a_set, read_set

SET = SetKey("ns", "wl")


def keys(count: int) -> Iterator[Key | None]:
    return (ReplicaKey("ns", "wl", index) if index % 2 else None for index in range(count))


async def test_few_keys_are_enqueued_at_once():
    enqueued: list[Key] = []
    SlicedEnqueuer(enqueued.append).start(SET, lambda: keys(timing.FAN_OUT_SLICE - 1))
    assert len(enqueued) == timing.FAN_OUT_SLICE // 2 - 1


async def test_many_keys_are_enqueued_in_slices():
    enqueued: list[Key] = []
    SlicedEnqueuer(enqueued.append).start(SET, lambda: keys(3 * timing.FAN_OUT_SLICE + 2))
    counts = [len(enqueued)]
    while counts[-1] < 3 * timing.FAN_OUT_SLICE // 2 + 1:
        await asyncio.sleep(0)
        counts.append(len(enqueued))
    assert counts == [
        timing.FAN_OUT_SLICE // 2,
        timing.FAN_OUT_SLICE,
        3 * timing.FAN_OUT_SLICE // 2,
        3 * timing.FAN_OUT_SLICE // 2 + 1,
    ]


async def test_restart_during_slices_enqueues_keys_again():
    enqueued: list[Key] = []
    slices = SlicedEnqueuer(enqueued.append)
    slices.start(SET, lambda: keys(2 * timing.FAN_OUT_SLICE))
    slices.start(SET, lambda: iter(()))
    slices.start(SET, lambda: keys(2))
    for _turn in range(4):
        await asyncio.sleep(0)
    assert enqueued[-1] == ReplicaKey("ns", "wl", 1)
    slices.start(SET, lambda: keys(2))
    assert len(enqueued) == timing.FAN_OUT_SLICE + 2, "no iteration is in progress"


def test_set_above_limit_lists_existing_replicas_only():
    huge = read_set(a_set("a:1", replicas=2**31 - 1))
    assert list(replicas(Caches(), SET, huge)) == []


def test_failed_iteration_does_not_block_its_owner():
    async def play() -> list[object]:
        enqueued: list[object] = []
        slices = SlicedEnqueuer(enqueued.append)

        def failing():
            raise RuntimeError("a bug")
            yield

        with pytest.raises(RuntimeError):
            slices.start("owner", failing)
        slices.start("owner", lambda: iter([SetKey("ns", "wl")]))
        return enqueued

    assert asyncio.run(play()) == [SetKey("ns", "wl")]
