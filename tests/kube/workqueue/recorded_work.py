"""Work for queues under test: it records its keys, and when it starts and ends on the loop's clock."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine, Hashable
from typing import Any

from grove.kube.client.retry import Backoff
from grove.kube.workqueue.queue import WorkQueue

Work = Callable[[str], Coroutine[Any, Any, object]]


def now() -> float:
    return asyncio.get_running_loop().time()


class RecordedWork:
    """Work that takes some seconds, and records when it started and ended on which key."""

    def __init__(self, takes: float = 1.0) -> None:
        self.takes = takes
        self.began: list[tuple[float, str]] = []
        self.ended: list[tuple[float, str]] = []

    async def __call__(self, key: str) -> None:
        self.began.append((now(), key))
        await asyncio.sleep(self.takes)
        self.ended.append((now(), key))


def started(
    work: Work,
    workers: int = 1,
    backoff: Backoff | None = None,
    tenant: Callable[[str], Hashable] = lambda _: None,
) -> WorkQueue[str]:
    queue = WorkQueue("test", work, workers=workers, tenant=tenant, backoff=backoff, rng=random.Random(0))
    queue.start()
    return queue
