"""A candidate in a process of its own, for tests to stop and kill: while it leads, it writes all the time.

Prints `elected`, `wrote <n>` for its first and each hundredth write, and `lost <reason>`. Each write is a
ConfigMap named after the candidate: the resourceVersions show the order of the writes of all candidates.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from grove.api.intents import Create, Target
from grove.kube.auth import config
from grove.kube.client.client import Client
from grove.kube.client.resource import CONFIG_MAPS
from grove.kube.executor.executor import Executor
from grove.kube.executor.outcome import IntentState
from grove.kube.leader.elector import Elector
from grove.kube.leader.leadership import FencedTransport, Leadership
from grove.kube.leader.lease import LeaseTiming

TIMING = LeaseTiming(lease_duration=15, renew_deadline=11, retry_period=0.5)
"""Short enough to wait for, and long enough that a busy machine does not miss a renewal."""
LONG_LEASE = LeaseTiming(lease_duration=3600, renew_deadline=1800, retry_period=0.5)
"""The lease does not expire during a test."""


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def keep_writing(executor: Executor, namespace: str, identity: str) -> None:
    written = 0
    while True:
        name = f"{identity}-{written}"
        target = Target("v1", "ConfigMap", name, namespace)
        body = {"metadata": {"name": name, "labels": {"writer": identity}}}
        outcome = await executor.execute([Create(target, body)])
        if outcome.results[0].state is IntentState.DONE:
            if written % 100 == 0:
                say(f"wrote {written}")
            written += 1
        await asyncio.sleep(0.005)


async def lead(
    leadership: Leadership, client: Client, namespace: str, identity: str, stop: asyncio.Event
) -> None:
    say("elected")
    fenced = FencedTransport(client.transport, leadership, TIMING.longest_write)
    writing = asyncio.create_task(keep_writing(Executor(fenced, [CONFIG_MAPS]), namespace, identity))
    ends = {asyncio.create_task(leadership.ended()), asyncio.create_task(stop.wait())}
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    if leadership.is_over:
        say(f"lost {await leadership.ended()}")
        # The writer still runs: the fence has to stop whatever it sends now.
        await asyncio.wait({writing}, timeout=1.0)
    for task in (writing, *ends):
        task.cancel()
    await asyncio.wait({writing})


async def main(kubeconfig: str, namespace: str, identity: str, timing_name: str = "") -> None:
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    # A SIGSTOP could stop the process between the check of leadership and the write that it permits. With a
    # handler in the event loop it stops before the check or after the write.
    loop.add_signal_handler(signal.SIGUSR1, os.kill, os.getpid(), signal.SIGSTOP)
    async with Client(config.load(Path(kubeconfig))) as client:
        timing = LONG_LEASE if timing_name == "long" else TIMING
        elector = Elector(client, namespace, "election", identity, timing=timing)
        say("following")
        async with elector.lead() as leadership:
            await lead(leadership, client, namespace, identity, stop)
    say("bye")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
