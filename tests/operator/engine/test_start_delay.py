"""How long after a change a replica is reconciled that is starting."""

from __future__ import annotations

import asyncio

from grove import timing
from grove.operator.keys import ReplicaKey
from tests.operator.controller_run import ControllerRun

KEY = ReplicaKey("ns", "wl", 0)


def test_replica_waits_for_a_slot_if_only_statuses_are_left() -> None:
    async def scenario() -> list[tuple[float, list[object]]]:
        engine = ControllerRun(lambda *_: None).controller.engine
        limiter, state, found = engine.executor.limiter, engine.states.of(KEY), []
        for only_statuses_left, in_flight in ((False, limiter.limit), (True, 0), (True, limiter.limit)):
            state.only_statuses_left, limiter.in_flight = only_statuses_left, in_flight
            found.append((engine.start_delay(KEY), engine._publisher.release(64)))
        return found

    assert asyncio.run(scenario()) == [(0.0, []), (0.0, []), (timing.STATUS_MAX_DELAY, [KEY])]


def test_replica_is_reconciled_when_slots_become_free() -> None:
    async def scenario() -> list[bool]:
        run = ControllerRun(lambda *_: None)
        limiter = run.controller.engine.executor.limiter
        limiter.record_reply = lambda *_: None  # the limit stays
        busy, found = limiter.limit // 2, []
        limiter.in_flight = busy  # writes of others
        for ended in (0, busy):
            for _ in range(ended):
                limiter.release()
            await run.work(0.8)
            paths = [request.path for request, _ in run.transport.requests]
            found.append(any(path.startswith("/apis/scheduler") and "/status" in path for path in paths))
        assert run.transport.sent("create", "pods")
        return found

    assert asyncio.run(scenario()) == [False, True]
