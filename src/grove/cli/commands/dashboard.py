"""`grove dashboard`: serves the web page, on this machine for one user, or in the cluster with sign-in."""

from __future__ import annotations

import asyncio
import os
import sys
import webbrowser
from collections.abc import Callable
from contextlib import closing, nullcontext, suppress
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Annotated

from cyclopts import Parameter
from msgspec.structs import replace

from grove import timing
from grove.api.naming.well_known import OPERATOR_LEASE
from grove.cli import options
from grove.cli.command_logs import log_later
from grove.cli.commands.inspection.cluster_input import ClusterInput
from grove.cli.exit_codes import ExitCode
from grove.cli.printable import printable
from grove.dashboard.access.caller import OwnAccess
from grove.dashboard.rights import Rights
from grove.dashboard.server.process import Dashboard, Settings
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import NAMESPACES
from grove.kube.errors import ConfigError, Forbidden, NotFound


def dashboard(
    *,
    namespace: options.NamespaceOption = None,
    port: Annotated[
        int | None,
        Parameter(help=f"Port; default: {timing.DASHBOARD_PORT}, or a free one if it is in use; 0: any."),
    ] = None,
    no_browser: Annotated[bool, Parameter(negative=(), help="Do not open a browser.")] = False,
    snapshot: options.SnapshotOption = None,
    lease: options.LeaseOption = OPERATOR_LEASE,
    sign_in: Annotated[
        bool,
        Parameter(
            negative=(),
            help="Users sign in with a token of the cluster, over TLS, and see what they may list.",
        ),
    ] = False,
    namespaces: Annotated[
        str,
        Parameter(help="With --sign-in: the only namespaces to read, separated by commas; without nodes."),
    ] = "",
    bind: Annotated[
        str, Parameter(help="Address to listen on; one that others can reach needs --sign-in.")
    ] = "127.0.0.1",
    tls_cert_dir: Annotated[
        Path | None,
        Parameter(help="Folder of tls.crt and tls.key, with --sign-in; default: a self-signed certificate."),
    ] = None,
    kubeconfig: options.KubeconfigOption = None,
    context: options.ContextOption = None,
) -> int:
    """Show the cluster as a web page: where gangs are, what waits and why, and what just happened.

    It runs on this machine with the rights of the kubeconfig until it is interrupted. Every program of this
    machine can open the page meanwhile. The chart runs it in the cluster (`dashboard.enabled`), where users
    sign in.
    """
    if sign_in and snapshot is not None:
        raise ConfigError("--sign-in and --snapshot exclude each other: no cluster reviews the tokens")
    if namespaces and not sign_in:
        raise ConfigError("--namespaces is used with --sign-in only: choose one namespace with -n")
    listed = tuple(filter(None, namespaces.split(","))) or ((namespace,) if namespace else ())
    if not sign_in:
        log_later("error")  # the page says which watches are interrupted, and what may not be read
    source = ClusterInput(snapshot, kubeconfig, context)
    with closing(Dashboard(Settings(bind, port, sign_in, tls_cert_dir))) as served:
        opened = partial(_announce, served.address, browser=not no_browser and not sign_in)
        asyncio.run(_serve(served, source, listed, lease, sign_in, opened))
    return ExitCode.OK


async def _serve(
    served: Dashboard,
    source: ClusterInput,
    namespaces: tuple[str, ...],
    lease: str,
    sign_in: bool,
    opened: Callable[[], None],
) -> None:
    if source.snapshot is not None:
        await _serve_snapshot(served, source.snapshot, namespaces, opened)
        return
    from grove.dashboard.state.live import live_board
    from grove.dashboard.state.own_rights import own_rights

    connection = source.connection()
    async with Client(connection) as client:
        watched = partial(live_board, client, lease=lease, source=connection.server)
        if sign_in:
            await served.serve(served.signed_in(client), watched(namespaces=namespaces), opened)
            return
        place = namespaces or (connection.namespace,)
        rights = await own_rights(client, place[0])
        only = () if rights.namespaces is None else place
        if namespaces and not only:
            rights = replace(rights, namespaces=frozenset(namespaces))
        if namespaces:
            missing = await _missing_namespace(client, place[0])
            rights = replace(rights, unread=(*missing, *rights.unread))
        await served.serve(OwnAccess(rights), watched(namespaces=only, nodes=rights.nodes), opened)


async def _missing_namespace(client: Client, namespace: str) -> tuple[str, ...]:
    """Why a page of a namespace is empty: a name that is written wrong."""
    try:
        await client.get(NAMESPACES, namespace, as_type=Object)
    except NotFound:
        return (f"namespace {namespace} did not exist when the dashboard was started: check -n",)
    except Forbidden:
        pass  # users of one namespace may often not read it
    return ()


async def _serve_snapshot(
    served: Dashboard, path: Path, namespaces: tuple[str, ...], opened: Callable[[], None]
) -> None:
    from grove.cluster_state.snapshot_file import read_file
    from grove.dashboard.state.snapshot import snapshot_board

    board = snapshot_board(await asyncio.to_thread(read_file, path))
    empty = [each for each in namespaces if not any(board.objects(each).named())]
    unread = tuple(f"the snapshot has nothing in namespace {each}: check -n" for each in empty)
    rights = Rights(frozenset(namespaces) if namespaces else None, unread=unread)
    await served.serve(OwnAccess(rights), nullcontext(board), opened)


def _announce(address: str, *, browser: bool) -> None:
    sys.stdout.write(printable(f"The dashboard is at {address} (end it with Ctrl-C).") + "\n")
    sys.stdout.flush()
    if browser and _has_display():
        Thread(target=_open_browser, args=(address,), daemon=True).start()


def _has_display() -> bool:
    """Whether a browser would be seen: not over a connection without a display, and not from a script."""
    graphical = sys.platform != "linux" or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY")))
    return graphical and sys.stdout.isatty()


def _open_browser(address: str) -> None:
    with suppress(webbrowser.Error, OSError):  # the user has the address
        webbrowser.open(address)
