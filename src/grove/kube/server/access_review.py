"""Decides whether the sender of a request may read a path: the API server reviews its token and rights."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from grove import timing
from grove.kube.client.client import Client
from grove.kube.client.resource import Resource
from grove.kube.errors import KubeError

TOKEN_REVIEWS = Resource("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", namespaced=False)
ACCESS_REVIEWS = Resource(
    "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False
)


class AccessReviewer:
    """Reviews tokens. Answers are kept for a short time, by the hash of the token."""

    def __init__(self, client: Client, clock: Callable[[], float] = time.monotonic) -> None:
        self._client, self._clock = client, clock
        self._known: dict[tuple[bytes, str], tuple[HTTPStatus, float]] = {}
        self._turns = asyncio.Semaphore(timing.ACCESS_REVIEWS_AT_ONCE)

    async def status(self, token: str, path: str) -> HTTPStatus:
        """OK, UNAUTHORIZED (no token, or an invalid one), FORBIDDEN, or SERVICE_UNAVAILABLE: the API server
        does not answer, or too many tokens wait for it."""
        if not token:
            return HTTPStatus.UNAUTHORIZED
        key = hashlib.sha256(token.encode(errors="replace")).digest(), path
        known = self._known.get(key)
        if known is not None and self._clock() < known[1]:
            return known[0]
        try:
            async with asyncio.timeout(timing.ACCESS_REVIEW_TIMEOUT), self._turns:
                status = await self._review(token, path)
        except (TimeoutError, KubeError, ValueError):
            return HTTPStatus.SERVICE_UNAVAILABLE
        self._keep(key, status)
        return status

    def _keep(self, key: tuple[bytes, str], status: HTTPStatus) -> None:
        if len(self._known) >= timing.ACCESS_REVIEWS_KEPT:
            del self._known[next(iter(self._known))]
        granted = status is HTTPStatus.OK
        kept = timing.ACCESS_GRANTED_KEPT if granted else timing.ACCESS_DENIED_KEPT
        self._known[key] = status, self._clock() + kept

    async def _review(self, token: str, path: str) -> HTTPStatus:
        verified = await self._ask(TOKEN_REVIEWS, {"token": token})
        if not verified.get("authenticated"):
            return HTTPStatus.UNAUTHORIZED
        user: dict[str, Any] = verified.get("user") or {}
        subject = {key: user[key] for key in ("uid", "groups", "extra") if user.get(key)}
        asked = {"nonResourceAttributes": {"path": path, "verb": "get"}}
        decided = await self._ask(ACCESS_REVIEWS, {"user": user.get("username", ""), **subject, **asked})
        return HTTPStatus.OK if decided.get("allowed") else HTTPStatus.FORBIDDEN

    async def _ask(self, resource: Resource, spec: dict[str, Any]) -> dict[str, Any]:
        body = {"apiVersion": resource.api_version, "kind": resource.kind, "spec": spec}
        answer: dict[str, Any] = await self._client.create(resource, body, as_type=dict)
        return answer.get("status") or {}
