"""`grove diagnostics`: writes an archive for support: objects, events, the operator's log and its checks,
without Secrets and values of environment variables."""

from __future__ import annotations

import asyncio
import os
import platform
import sys
import time
from collections.abc import Awaitable
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec
from cyclopts import Parameter
from msgspec import Raw

from grove import timing
from grove.api.naming.well_known import OPERATOR_LEASE
from grove.cli import options
from grove.cli.commands.actions.workload import parsed_timeout
from grove.cli.commands.installation.bundle import Contents, Missing, archive, chosen, contents
from grove.cli.commands.installation.doctor import all_checks, check_lines
from grove.cli.commands.installation.facts import Installation, Unreadable
from grove.cli.commands.installation.operator_logs import operator_logs
from grove.cli.commands.installation.reading import read_installation
from grove.cli.printable import printable
from grove.cli.structured_output import write_structured
from grove.cluster_state.kinds import kinds_of
from grove.cluster_state.model import ClusterState, ReadKind, unread_lines
from grove.cluster_state.operator_setup import new_caches, operator_setup
from grove.cluster_state.reading import read_state
from grove.cluster_state.redaction import redacted
from grove.cluster_state.snapshot_file import encode
from grove.kube.auth import config
from grove.kube.auth.config import Config
from grove.kube.client.client import Client
from grove.kube.client.resource import EVENTS
from grove.kube.errors import ConfigError
from grove.plan.timestamps import rfc3339

T = TypeVar("T")
_STDOUT = Path("-")


def diagnostics(
    *,
    file: Annotated[
        Path | None,
        Parameter(
            alias="-f",
            allow_leading_hyphen=True,
            help="The archive; - is stdout; default: named by the time.",
        ),
    ] = None,
    namespace: Annotated[
        str | None, Parameter(alias="-n", help="Only objects of this namespace; default: of all.")
    ] = None,
    timeout: Annotated[str, Parameter(help="How long each part may take, such as 30s.")] = "60s",
    output: options.StructuredOption = "table",
    lease: Annotated[str, Parameter(help="Name of the operator's Lease.")] = OPERATOR_LEASE,
    kubeconfig: options.KubeconfigOption = None,
    context: options.ContextOption = None,
) -> int:
    """Write an archive (.tar.gz) for support: the objects of workloads, pods, nodes, events, the operator's
    log, versions, and what grove doctor says.

    It contains no Secrets and no ConfigMaps, no values of environment variables, no annotations of other
    tools, and no arguments that are secret by their names. What could not be read is listed in contents.json.

    Exit codes: 0 written, also if parts are missing; 1 the cluster cannot be reached, or the file cannot be
    written.
    """
    connection, seconds = config.load(kubeconfig, context), parsed_timeout(timeout)
    now = time.time()
    folder = f"grove-diagnostics-{time.strftime('%Y%m%d-%H%M%S', time.gmtime(now))}"
    path = file if file is not None else Path(f"{folder}.tar.gz")
    _check_writable(path)
    parts = asyncio.run(_collect(connection, namespace or "", lease, seconds))
    listed, packed = _packed(parts, folder, now)
    _write(path, packed)
    if path == _STDOUT:
        return 0
    if output != "table":
        write_structured({"file": str(path), "bytes": len(packed), "contents": listed}, output)
        return 0
    sys.stdout.write(printable(f"{path}: {len(listed.files)} files, {len(packed)} bytes") + "\n")
    sys.stdout.flush()
    for each in listed.missing:
        sys.stderr.write(printable(f"grove: not in it: {each.what}: {each.reason}") + "\n")
    sys.stderr.write("grove: look through it before you send it: names, images and arguments are in it\n")
    return 0


class _Parts(msgspec.Struct):
    """What was read."""

    installation: Installation | Missing
    state: ClusterState | Missing
    events: ClusterState | Missing
    logs: tuple[dict[str, bytes], list[Missing]] | Missing
    lease: str


async def _collect(connection: Config, only: str, lease: str, seconds: float | None) -> _Parts:
    """Reads all parts at once, each within its time. Raises KubeError if the server cannot be reached."""
    kinds = kinds_of(new_caches(operator_setup()), lease)
    async with Client(connection) as client:
        place, source = connection.namespace, connection.server

        def read(wanted: tuple[ReadKind, ...]) -> Awaitable[ClusterState]:
            return read_state(client, wanted, place, only=only, source=source)

        installation = await _within(
            seconds, "doctor", read_installation(connection, lease, only or connection.namespace)
        )
        homes = _homes(installation)
        state, events, logs = await asyncio.gather(
            _within(seconds, "snapshot.json", read(kinds)),
            _within(seconds, "events.json", read((ReadKind(EVENTS),))),
            _within(seconds, "operator logs", operator_logs(client, homes)),
        )
    return _Parts(installation, state, events, logs, lease)


async def _within(seconds: float | None, what: str, reading: Awaitable[T]) -> T | Missing:
    try:
        async with asyncio.timeout(seconds):
            return await reading
    except TimeoutError:
        return Missing(what, f"not read within {seconds:g} s: raise --timeout")


def _homes(installation: Installation | Missing) -> list[str]:
    """Namespaces where the operator is expected."""
    if isinstance(installation, Missing) or isinstance(installation.leases, Unreadable):
        return ["grove-system"]
    return [*(each.metadata.namespace for each in installation.leases), "grove-system"]


def _packed(parts: _Parts, folder: str, now: float) -> tuple[Contents, bytes]:
    files: dict[str, bytes] = {}
    missing: list[Missing] = []
    version = server = ""
    if isinstance(parts.installation, Missing):
        missing.append(parts.installation)
    else:
        version, server = parts.installation.version, parts.installation.server_version
        files |= _installation_files(parts.installation, parts.lease)
    if isinstance(parts.logs, Missing):
        missing.append(parts.logs)
    else:
        files |= parts.logs[0]
        missing += parts.logs[1]
    for name, state in (("events.json", parts.events), ("snapshot.json", parts.state)):
        if isinstance(state, Missing):
            missing.append(state)
            continue
        files[name] = _events(state) if name == "events.json" else encode(state)
        missing += (Missing(name, line) for line in unread_lines(state.unread))
    kept, left_out = chosen(files)
    described = contents(
        kept, (*missing, *left_out), created=rfc3339(now), version=version, server_version=server
    )
    return described, archive(folder, kept, described, now)


def _installation_files(found: Installation, lease: str) -> dict[str, bytes]:
    checks = all_checks(found, lease)
    text = "".join(f"{line}\n" for each in checks for line in check_lines(each, None))
    deployments = () if isinstance(found.deployments, Unreadable) else found.deployments
    versions = {
        "grove": found.version,
        "kubernetes": found.server_version,
        "operatorImages": [each.container.image for each in deployments],
        "python": platform.python_version(),
        "platform": platform.platform(),
    }
    files = {"versions.json": _json(versions), "doctor.txt": text.encode(), "doctor.json": _json(checks)}
    if not isinstance(found.configuration, Unreadable):
        files["configuration.json"] = _json(found.configuration)
    return files


def _events(state: ClusterState) -> bytes:
    """The latest events, without what a snapshot does not contain."""
    items: tuple[Raw, ...] = state.kind(EVENTS).items
    kept = [redacted(msgspec.json.decode(each)) for each in items[-timing.BUNDLE_EVENTS :]]
    return msgspec.json.encode(kept) + b"\n"


def _json(value: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


def _check_writable(path: Path) -> None:
    """Raise ConfigError before the cluster is read."""
    if path == _STDOUT:
        if sys.stdout.isatty():
            raise ConfigError("-f -: an archive is not for a terminal: redirect the output to a file")
    elif path.exists():
        raise ConfigError(f"{path} exists already: name another file with -f")
    elif not path.parent.is_dir():
        raise ConfigError(
            f"{path}: there is no folder {path.parent}: create it, or name another file with -f"
        )


def _write(path: Path, packed: bytes) -> None:
    if path == _STDOUT:
        sys.stdout.buffer.write(packed)
        sys.stdout.buffer.flush()
        return
    try:  # readable by the owner only, and never over another file
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(packed)
    except FileExistsError:
        raise ConfigError(f"{path} exists already: name another file with -f") from None
    except PermissionError as problem:
        raise ConfigError(f"{path}: {problem.strerror}: name another file with -f") from None
