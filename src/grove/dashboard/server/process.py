"""One process of the dashboard: it serves until SIGTERM, or until it is cancelled.

The port is opened first: a wrong address is reported before anything of the cluster is read. Requests that
arrive before everything is read get an error that says so.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from msgspec import Struct

from grove.dashboard.access.caller import Access
from grove.dashboard.access.rights_reviewer import RightsReviewer
from grove.dashboard.access.sign_in import SignInAccess
from grove.dashboard.access.token_reviewer import TokenReviewer
from grove.dashboard.board import Board
from grove.dashboard.server.application import application
from grove.dashboard.server.board_slot import BoardSlot
from grove.dashboard.server.page_functions import cluster_pages
from grove.dashboard.server.requests.origins import is_address, is_loopback, loopback_hosts
from grove.dashboard.server.serving import address, listen, serving, tls_context
from grove.dashboard.server.static_files import read_files
from grove.kube.client.client import Client
from grove.kube.errors import ConfigError
from grove.kube.server.listener import raise_file_limit
from grove.kube.server.refusals import Refusals


class Settings(Struct, frozen=True):
    """Where the dashboard listens, and whether users sign in."""

    bind: str = "127.0.0.1"
    port: int | None = None
    """None: the usual one, or any free one."""
    sign_in: bool = False
    certificates: Path | None = None
    """The folder of tls.crt and tls.key; None: a certificate of our own, with sign-in."""

    def check(self) -> None:
        """Raises ConfigError for settings that are not safe."""
        if not is_address(self.bind):
            raise ConfigError(
                f"--bind {self.bind} is not an IP address: give one of this machine, such as 127.0.0.1"
            )
        if not self.sign_in and not is_loopback(self.bind):
            raise ConfigError(
                f"--bind {self.bind} would show the cluster to everyone who can connect: "
                "add --sign-in, or leave --bind out"
            )
        if self.certificates is not None and not self.sign_in:
            raise ConfigError("--tls-cert-dir is used with --sign-in only: add --sign-in, or leave it out")


class Dashboard:
    """A dashboard that is about to be served. Raises ConfigError for settings that cannot be used."""

    def __init__(self, settings: Settings) -> None:
        settings.check()
        raise_file_limit()
        self._settings, self._slot = settings, BoardSlot()
        self._tls = tls_context(settings.certificates) if settings.sign_in else None
        self._listener = listen(settings.bind, settings.port)

    def close(self) -> None:
        """Close the port."""
        self._listener.close()

    @property
    def address(self) -> str:
        """The URL of the page."""
        return address(self._listener, tls=self._settings.sign_in)

    def signed_in(self, client: Client) -> Access:
        """Access for users who sign in, whose tokens and rights the client reviews."""
        rights = RightsReviewer(client, lambda: self._slot.board.namespaces())
        return SignInAccess(TokenReviewer(client), rights)

    async def serve(
        self,
        access: Access,
        board: AbstractAsyncContextManager[Board],
        opened: Callable[[], None],
    ) -> None:
        """Serve until SIGTERM. `opened` is called as soon as the board is there. Raises KubeError."""
        refusals = Refusals("dashboard")
        hosts = None
        if not self._settings.sign_in:
            hosts = loopback_hosts(self._listener.getsockname()[1], self._settings.bind)
        app = application(
            self._slot,
            access,
            cluster_pages(),
            read_files(),
            refusals,
            hosts=hosts,
            tls=self._settings.sign_in,
        )
        async with serving(self._listener, app, refusals, self._tls):
            await _until_sigterm(self._show(board, opened))

    async def _show(self, board: AbstractAsyncContextManager[Board], opened: Callable[[], None]) -> None:
        async with board as found:
            self._slot.fill(found)
            opened()
            await asyncio.Event().wait()


async def _until_sigterm(work: Coroutine[Any, Any, None]) -> None:
    """Do something until SIGTERM, with which a pod is ended. SIGINT cancels, as in all commands."""
    stopped, task = asyncio.Event(), asyncio.ensure_future(work)

    def stop() -> None:
        stopped.set()
        task.cancel()

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop)
    try:
        await task
    except asyncio.CancelledError:
        if not stopped.is_set():
            raise
