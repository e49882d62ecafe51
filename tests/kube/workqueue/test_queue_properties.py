"""Properties of the work queue for any enqueues, durations and failures."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from grove.kube.client.retry import Backoff
from grove.kube.errors import KubeError
from grove.kube.testing.virtual_time import run_in_virtual_time
from grove.kube.workqueue.queue import WorkQueue

WORKERS = 2
KEYS = "abcd"

enqueues = st.lists(
    st.tuples(
        st.sampled_from(KEYS), st.sampled_from([0.0, 0.25, 1.0, 3.0]), st.sampled_from([None, 0.0, 0.5, 4.0])
    ),
    max_size=40,
)
efforts = st.lists(st.tuples(st.sampled_from([0.0, 0.25, 2.0]), st.booleans()), max_size=20)


@dataclass
class Trial:
    """Work that checks the rules of the queue; `efforts` are the duration and failure of each call."""

    efforts: list[tuple[float, bool]]
    running: Counter[str] = field(default_factory=Counter)
    pending_work: dict[str, float] = field(default_factory=dict)  # due time, not started since
    ready: dict[str, Counter[str]] = field(default_factory=dict)  # keys that overtook it since it is ready
    last_failed: dict[str, bool] = field(default_factory=dict)

    async def work(self, key: str) -> None:
        now = asyncio.get_running_loop().time()
        self.running[key] += 1
        assert self.running[key] == 1, "a key is worked on once at a time"
        assert self.running.total() <= WORKERS, "workers are bounded"
        enqueued = self.pending_work.pop(key, float("inf")) <= now
        assert enqueued or self.last_failed.get(key), "no work without an enqueue or a failure"
        self.ready.pop(key, None)
        for overtaken in self.ready.values():
            overtaken[key] += 1
            assert overtaken[key] <= 1, "no key overtakes another twice"
        takes, fails = self.efforts.pop() if self.efforts else (0.0, False)
        try:
            await asyncio.sleep(takes)
        finally:
            self.running[key] -= 1
            self.last_failed[key] = fails
            if key in self.pending_work and self.pending_work[key] <= asyncio.get_running_loop().time():
                self.ready[key] = Counter()
        if fails:
            raise KubeError("as planned")

    def enqueued(self, key: str, at: float) -> None:
        now = asyncio.get_running_loop().time()
        self.pending_work[key] = min(at, self.pending_work.get(key, at))
        if at <= now and not self.running[key]:
            self.ready.setdefault(key, Counter())


async def _try(enqueues: list[tuple[str, float, float | None]], trial: Trial) -> None:
    loop = asyncio.get_running_loop()
    broken: list[BaseException] = []

    async def work(key: str) -> None:
        try:
            await trial.work(key)
        except AssertionError as problem:
            broken.append(problem)

    queue = WorkQueue(
        "trial", work, workers=WORKERS, backoff=Backoff(first=0.1, longest=1.0), rng=random.Random(0)
    )
    queue.start()
    for key, pause, ahead in enqueues:
        await asyncio.sleep(pause)
        at = loop.time() if ahead is None else loop.time() + ahead
        trial.enqueued(key, at)
        queue.enqueue(key, at)
    await asyncio.sleep(200)
    await queue.stop()
    assert not broken, broken[0]
    assert not trial.pending_work, "every enqueue is followed by work that starts after it"
    assert not any(trial.last_failed.values()), "failed work is retried until it succeeds"


@settings(max_examples=200, deadline=None)
@given(enqueues, efforts)
def test_every_enqueue_is_worked_on_fairly_and_serially(
    enqueues: list[tuple[str, float, float | None]], efforts: list[tuple[float, bool]]
) -> None:
    run_in_virtual_time(_try(enqueues, Trial(efforts)))
