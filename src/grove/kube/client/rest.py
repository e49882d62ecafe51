"""Sends requests of all verbs: counts them, retries where that is safe, and raises typed errors."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from time import perf_counter
from typing import Self

from grove import timing
from grove.kube.auth.config import Config
from grove.kube.client.resource import PODS, Resource, query
from grove.kube.client.retry import RetryPolicy
from grove.kube.client.transport import HttpTransport, Request, Response, Stream, Transport
from grove.kube.errors import ApiError, KubeError, api_error, read_status
from grove.kube.request_counts import requests

_SECONDS = re.compile("[0-9]{1,6}")  # in Retry-After; dates and other values are ignored


class RestClient:
    """A transport with retries, metrics and typed errors."""

    def __init__(
        self, target: Config | Transport, *, retry: RetryPolicy | None = None, seed: int | None = None
    ) -> None:
        self.transport: Transport = HttpTransport(target) if isinstance(target, Config) else target
        self._retry = retry or RetryPolicy()
        self._rng = random.Random(seed)  # noqa: S311 - jitter, not secrets

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await self.transport.close()

    async def raw(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        content_type: str = "application/json",
        timeout: float = timing.REQUEST_TIMEOUT,
    ) -> Response:
        """A request to any other path, such as `/readyz` or `/openapi/v2`; raises the same errors."""
        verb = "get" if method == "GET" else "create"
        return await self.send(
            Request(method, path, verb, body=body, content_type=content_type, timeout=timeout)
        )

    async def send(self, request: Request) -> Response:
        """Send a request, retry where that is safe, and raise the server's errors."""
        attempt = 0
        while True:
            started = perf_counter()
            try:
                response = await self.transport.send(request)
                code = response.status
                requests.count(request.verb, request.resource, str(code), perf_counter() - started)
                if code < 300:
                    return response
                error: KubeError = _to_api_error(request, code, response.headers, response.body)
            except KubeError as lost:
                requests.count(request.verb, request.resource, "lost", perf_counter() - started)
                error = lost
            pause = self._retry.wait(request, error, attempt, self._rng)
            if pause is None:
                raise error
            from grove.kube.metrics import retries_total  # commands that retry nothing need not import it

            retries_total.labels(request.verb, request.resource, type(error).__name__).inc()
            attempt += 1
            await asyncio.sleep(pause)

    @asynccontextmanager
    async def stream(
        self,
        resource: Resource,
        parameters: Mapping[str, object],
        *,
        namespace: str | None = None,
        idle_timeout: float,
    ) -> AsyncIterator[Stream]:
        """A watch as it arrives. A rejection is raised; an end or a break of the body is for the caller."""
        path = resource.path(namespace) + query({"watch": True, **parameters})
        request = Request("GET", path, "watch", resource.label, namespace or "", timeout=idle_timeout)
        async with self._open(request) as stream:
            yield stream

    @asynccontextmanager
    async def log(
        self, pod: str, parameters: Mapping[str, object], *, namespace: str, idle_timeout: float
    ) -> AsyncIterator[Stream]:
        """The log of a container as it arrives; `parameters` as in PodLogOptions. A rejection is raised; an
        end or a break of the body is for the caller."""
        path = PODS.path(namespace, pod, "log") + query(parameters)
        request = Request("GET", path, "get", f"{PODS.label}/log", namespace, pod, timeout=idle_timeout)
        async with self._open(request) as stream:
            yield stream

    @asynccontextmanager
    async def _open(self, request: Request) -> AsyncIterator[Stream]:
        async with self.transport.stream(request) as stream:
            requests.count(request.verb, request.resource, str(stream.status))
            if stream.status >= 300:
                raise _to_api_error(request, stream.status, stream.headers, await _read_status_body(stream))
            yield stream


async def _read_status_body(stream: Stream) -> bytes:
    """The body of a rejection, up to the longest that a Status can have, so that an endless one ends."""
    body = bytearray()
    async for chunk in stream.chunks():
        body += chunk
        if len(body) > timing.MAX_STATUS_REPLY:
            break
    return bytes(body)


def _to_api_error(request: Request, code: int, headers: Mapping[str, str], body: bytes) -> ApiError:
    retry_after = headers.get("Retry-After", "")
    pause = float(retry_after) if _SECONDS.fullmatch(retry_after) else None
    return api_error(str(request), read_status(body, code), pause)
