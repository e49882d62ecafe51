"""`grove initc`: the program of the init container. It imports only what it needs, to start fast."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Coroutine, Sequence

from grove.initc.arguments import USAGE, UsageError, locate, parse
from grove.initc.ready_wait import wait


def main(arguments: Sequence[str]) -> int:
    """Wait for the given cliques. Exit codes: 0 all are ready; 1 wrong arguments; 128+n ended by signal n."""
    if {"-h", "--help"} & set(arguments):
        sys.stdout.write(USAGE)
        return 0
    try:
        arguments_ = parse(arguments)
        context = locate(arguments_)
    except UsageError as error:
        _say(str(error))
        return 1
    return asyncio.run(_wait_or_signal(wait(arguments_, context, _say)))


async def _wait_or_signal(waiting: Coroutine[None, None, None]) -> int:
    """Wait, or end at a signal: signals without a handler do not end the first process of a container."""
    task = asyncio.create_task(waiting)
    ended_by = 0

    def end(number: int) -> None:
        nonlocal ended_by
        ended_by = number
        task.cancel()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end, number)
    try:
        await task
    except asyncio.CancelledError:
        if not ended_by:
            raise
        return 128 + ended_by
    return 0


def _say(line: str) -> None:
    sys.stderr.write(f"grove-initc: {line}\n")
    sys.stderr.flush()
