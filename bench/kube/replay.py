"""A server that replays recorded pods as a watch, so that every contender reads the same bytes.

Run as `python -m bench.kube.replay LIST COUNT`; prints its address. The pods were recorded from a real API
server.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from pathlib import Path

import msgspec
from aiohttp import web

END = {
    "kind": "Pod",
    "apiVersion": "v1",
    "metadata": {"resourceVersion": "999", "annotations": {"k8s.io/initial-events-end": "true"}},
}


def events(path: Path, count: int) -> list[bytes]:
    """`count` watch events: the pods in a cycle, each time with a newer resourceVersion."""
    items = msgspec.json.decode(path.read_bytes())["items"]
    encoded = []
    for number in range(count):
        item = items[number % len(items)]
        item["metadata"]["resourceVersion"] = str(1000 + number)
        kind = "ADDED" if number < len(items) else "MODIFIED"
        encoded.append(msgspec.json.encode({"type": kind, "object": item}) + b"\n")
    return encoded


async def main(path: Path, count: int) -> None:
    """Serve until the process is terminated."""
    body = b"".join(events(path, count))
    synced = msgspec.json.encode({"type": "BOOKMARK", "object": END}) + b"\n"

    async def watch(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        if "sendInitialEvents" in request.query:
            await response.write(synced)
        with suppress(ConnectionError):  # a contender closes the connection when it has enough
            for start in range(0, len(body), 65536):
                await response.write(body[start : start + 65536])
            await asyncio.Event().wait()
        return response

    app = web.Application()
    app.router.add_get("/{tail:.*}", watch)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(f"http://127.0.0.1:{runner.addresses[0][1]}", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
