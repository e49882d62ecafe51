"""Credentials from a program, as cloud vendors ship them: client.authentication.k8s.io ExecCredential.

The program runs when a credential is first needed, shortly before the last one expires, and after the
server rejected one; concurrent requests share one run. It gets no terminal unless it asks for one, and
is stopped when it hangs: an error is better than an operator that waits for a log-in on a terminal.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from datetime import UTC, datetime, timedelta

import msgspec
from msgspec import Struct

from grove import timing
from grove.kube.auth.credentials import Certificate, Credential, bearer_header
from grove.kube.errors import ConfigError

_RENEW_BEFORE_EXPIRY = timedelta(seconds=timing.CREDENTIAL_RENEWAL)


class ExecCluster(Struct, frozen=True, omit_defaults=True, rename="kebab"):
    """What the plugin is given about the cluster when the kubeconfig sets provideClusterInfo."""

    server: str
    tls_server_name: str | None = None
    insecure_skip_tls_verify: bool = False
    certificate_authority_data: str | None = None
    proxy_url: str | None = None


class ExecSpec(Struct, frozen=True):
    """How to run the plugin."""

    user: str
    command: str
    args: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    api_version: str = "client.authentication.k8s.io/v1"
    interactive: str = "IfAvailable"
    install_hint: str = ""
    cluster: ExecCluster | None = None


class _ExecStatus(Struct, frozen=True, rename="camel"):
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: datetime | None = None


class _ExecCredential(Struct, frozen=True, rename="camel"):
    api_version: str
    kind: str
    status: _ExecStatus | None = None


class ExecPlugin:
    """Credentials that a program prints."""

    def __init__(self, spec: ExecSpec, timeout: float = timing.EXEC_PLUGIN_TIMEOUT) -> None:
        self._spec = spec
        self._timeout = timeout
        self._credential: Credential | None = None
        self._expires: datetime | None = None
        self._lock = asyncio.Lock()

    async def current(self) -> Credential:
        """The plugin's last credential while it is valid, else a new one."""
        if self._credential is not None and not self._is_stale():
            return self._credential
        async with self._lock:
            if self._credential is None or self._is_stale():
                self._credential, self._expires = self._read(await self._run())
            return self._credential

    def invalidate(self) -> None:
        """Run the plugin again next time."""
        self._credential = None

    def _is_stale(self) -> bool:
        return self._expires is not None and datetime.now(UTC) >= self._expires - _RENEW_BEFORE_EXPIRY

    async def _run(self) -> bytes:
        terminal = self._wants_terminal()
        try:
            process = await asyncio.create_subprocess_exec(
                self._spec.command,
                *self._spec.args,
                env=os.environ
                | dict(self._spec.environment)
                | {"KUBERNETES_EXEC_INFO": self._info(terminal)},
                stdin=None if terminal else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=not terminal,
            )
        except OSError as problem:
            hint = " ".join(self._spec.install_hint.split()) or "install it, or put it on PATH"
            raise self._error(f"cannot be started ({problem.strerror}): {hint}") from None
        try:
            async with asyncio.timeout(self._timeout):
                output, error_output = await process.communicate()
        except TimeoutError:
            _stop(process, group=not terminal)
            await process.wait()
            raise self._error(
                f"did not finish in {self._timeout:g} s: run it by hand to see what it waits for"
            ) from None
        except asyncio.CancelledError:
            _stop(process, group=not terminal)
            raise
        if process.returncode:
            message = " ".join(error_output.decode("utf-8", "replace").split())[-300:] or "no message"
            raise self._error(f"failed with exit code {process.returncode} ({message}): log in again with it")
        return output

    def _wants_terminal(self) -> bool:
        available = sys.stdin is not None and sys.stdin.isatty()
        if self._spec.interactive == "Always" and not available:
            raise self._error("needs a terminal and there is none: use credentials that need no user input")
        return available and self._spec.interactive != "Never"

    def _info(self, terminal: bool) -> str:
        spec: dict[str, object] = {"interactive": terminal}
        if self._spec.cluster:
            spec["cluster"] = self._spec.cluster
        info = {"apiVersion": self._spec.api_version, "kind": "ExecCredential", "spec": spec}
        return msgspec.json.encode(info).decode()

    def _read(self, output: bytes) -> tuple[Credential, datetime | None]:
        try:
            answer = msgspec.json.decode(output, type=_ExecCredential)
        except msgspec.MsgspecError as problem:
            raise self._error(f"did not print an ExecCredential ({problem}): check its arguments") from None
        if answer.kind != "ExecCredential" or answer.api_version != self._spec.api_version:
            raise self._error(
                f"printed {answer.api_version} {answer.kind}, the kubeconfig asks for "
                f"{self._spec.api_version} ExecCredential: make them agree"
            )
        status = answer.status
        if status is None or not (status.token or status.client_certificate_data):
            raise self._error("printed neither a token nor a client certificate: log in again with it")
        certificate = None
        if status.client_certificate_data:
            if not status.client_key_data:
                raise self._error("printed a client certificate without its key: update the plugin")
            certificate = Certificate(
                status.client_certificate_data.encode(), status.client_key_data.encode()
            )
        authorization = bearer_header(status.token) if status.token else None
        return Credential(authorization, certificate), status.expiration_timestamp

    def _error(self, what: str) -> ConfigError:
        return ConfigError(f"credential plugin {self._spec.command!r} of user {self._spec.user!r} {what}")


def _stop(process: asyncio.subprocess.Process, *, group: bool) -> None:
    """Kills the plugin and, when it leads a session of its own, the processes that it started."""
    with contextlib.suppress(ProcessLookupError):
        if group:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
