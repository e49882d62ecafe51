"""A replica in a process of its own, to be stopped and killed: once elected it writes and writes.

Says on standard output `elected`, `wrote <n>` for its first and each hundredth write, and `lost <why>`. Each
write is a ConfigMap named after the replica: the server's versions tell who wrote what in which order.
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
"""Short enough to be waited for, and too long for a busy machine to miss a renewal by itself."""
SLOW_BACKOFF = LeaseTiming(lease_duration=3600, renew_deadline=1800, retry_period=0.5)
"""Nobody lives to see a lease run out."""


def say(words: str) -> None:
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


async def write_on(executor: Executor, namespace: str, identity: str) -> None:
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
    writing = asyncio.create_task(write_on(Executor(fenced, [CONFIG_MAPS]), namespace, identity))
    ends = {asyncio.create_task(leadership.ended()), asyncio.create_task(stop.wait())}
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    if leadership.is_over:
        say(f"lost {await leadership.ended()}")
        # Goes on trying: whatever it sends now, the fence has to stop.
        await asyncio.wait({writing}, timeout=1.0)
    for task in (writing, *ends):
        task.cancel()
    await asyncio.wait({writing})


async def main(kubeconfig: str, namespace: str, identity: str, request_timeout: str = "") -> None:
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    # Between looking whether we lead and sending, nothing else happens in this process, but a signal may stop
    # it there. Told like this, it stops before it looks or after it has sent.
    loop.add_signal_handler(signal.SIGUSR1, os.kill, os.getpid(), signal.SIGSTOP)
    async with Client(config.load(Path(kubeconfig))) as client:
        timing = SLOW_BACKOFF if request_timeout == "patient" else TIMING
        elector = Elector(client, namespace, "election", identity, timing=timing)
        say("following")
        async with elector.lead() as leadership:
            await lead(leadership, client, namespace, identity, stop)
    say("bye")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
