"""python -m bench.dashboard.changing_board FILE: the dashboard of a snapshot file, where pods of a few nodes
change ten times a second."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from msgspec.structs import replace

from grove.cluster_state.snapshot_file import read_file
from grove.dashboard.access.caller import OwnAccess
from grove.dashboard.model import Delta, NodeCells, Picture, Source, Use
from grove.dashboard.rights import Rights
from grove.dashboard.server.process import Dashboard, Settings
from grove.dashboard.state.snapshot import snapshot_board
from grove.plan.timestamps import rfc3339

INTERVAL = 0.1
NODES_A_DELTA = 20
"""As many as a gang of 20 hosts has: deltas of a busy cluster are gangs that come and go."""


class ChangingBoard:
    """A board of a file, as a live one. Everything but the picture and its deltas is that of the file."""

    def __init__(self, board: Any) -> None:
        self._board, self._random = board, Random(3)
        self._picture: Picture = board.picture(Rights())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._board, name)

    @property
    def source(self) -> Source:
        return replace(self._board.source, live=True)

    def picture(self, rights: Rights) -> Picture:
        return replace(self._board.picture(rights), source=self.source)

    async def deltas(self, _rights: Rights, since: str) -> AsyncIterator[Delta | None]:
        number = 0
        while True:
            await asyncio.sleep(INTERVAL)
            number += 1
            yield Delta(f"{since.partition('+')[0]}+{number}", rfc3339(time.time()), nodes=self._changed())

    def _changed(self) -> dict[str, NodeCells]:
        nodes, gangs = self._picture.nodes, list(self._picture.gangs)
        chosen, gang = self._random.sample(list(nodes), NODES_A_DELTA), self._random.choice(gangs)
        return {name: replace(nodes[name], uses=(Use(gang, nodes[name].gpus, 1),)) for name in chosen}


@asynccontextmanager
async def changing_board(path: Path) -> AsyncIterator[Any]:
    yield ChangingBoard(snapshot_board(read_file(path)))


async def serve(path: Path) -> None:
    with closing(Dashboard(Settings(port=0))) as served:
        announce = partial(print, f"The dashboard is at {served.address}", flush=True)
        await served.serve(OwnAccess(), changing_board(path), announce)


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1])))
