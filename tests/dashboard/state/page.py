"""A page as tests see it: a picture, to which deltas are applied as the page does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from grove.dashboard.board import Board
from grove.dashboard.model import Delta, Picture
from grove.dashboard.rights import Rights

FIELDS = ("viewer", "connection", "operator", "unread", "topologies")


class Page:
    """What a page shows, and all that it was sent."""

    def __init__(self, picture: Picture) -> None:
        self.version = picture.version
        self.fields = {name: getattr(picture, name) for name in FIELDS}
        self.nodes, self.gangs, self.sets = dict(picture.nodes), dict(picture.gangs), dict(picture.sets)
        self.events = {(each.about.namespace, each.name): each for each in picture.events}
        self.sent = [msgspec.json.encode(picture).decode()]
        self.deltas: list[Delta] = []
        self._changed = asyncio.Event()

    def apply(self, delta: Delta) -> None:
        self.version = delta.version
        for name in FIELDS:
            if (value := getattr(delta, name, None)) is not None:
                self.fields[name] = value
        changed: tuple[tuple[dict[str, Any], Any], ...] = (
            (self.nodes, delta.nodes),
            (self.gangs, delta.gangs),
            (self.sets, delta.sets),
        )
        for known, changes in changed:
            for key, value in changes.items():
                if value is None:
                    del known[key]  # it must be there: a page is not sent what it never had
                else:
                    known[key] = value
        self.events |= {(each.about.namespace, each.name): each for each in delta.events}
        self.sent.append(msgspec.json.encode(delta).decode())
        self.deltas.append(delta)
        self._changed.set()

    @property
    def contents(self) -> tuple[Any, ...]:
        return self.fields, self.nodes, self.gangs, self.sets, self.events

    async def until(self, condition: Callable[[], object], seconds: float = 60.0) -> None:
        try:
            async with asyncio.timeout(seconds):
                while not condition():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            shown = "\n".join(map(repr, (self.fields, self.sets, self.gangs, self.nodes)))
            raise AssertionError(f"not within {seconds:g} s:\n{shown}") from None


@asynccontextmanager
async def open_page(board: Board, rights: Rights) -> AsyncIterator[Page]:
    """A page that follows a board until the block is left."""
    page = Page(board.picture(rights))

    async def follow() -> None:
        async for delta in board.deltas(rights, page.version):
            assert delta is not None, "the stream was reset"
            page.apply(delta)

    following = asyncio.create_task(follow())
    try:
        yield page
        assert not following.done(), following.exception()
    finally:
        following.cancel()
        await asyncio.wait({following})
