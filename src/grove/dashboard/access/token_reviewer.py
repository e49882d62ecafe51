"""Which user a token belongs to: the API server reviews it. Answers are kept for a short time."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from grove import timing
from grove.dashboard.access.errors import ReviewUnavailable
from grove.dashboard.rights import User
from grove.kube.client.client import Client
from grove.kube.errors import KubeError
from grove.kube.server.access_review import TOKEN_REVIEWS

_CREDENTIAL_ID = "authentication.kubernetes.io/credential-id"


class _UserInfo(Struct, frozen=True):
    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] | None = None
    extra: dict[str, tuple[str, ...]] | None = None


class _TokenStatus(Struct, frozen=True):
    authenticated: bool = False
    user: _UserInfo | None = None


class _TokenReview(Struct, frozen=True):
    status: _TokenStatus = _TokenStatus()


class TokenReviewer:
    """Reviews tokens; keeps the answers by the hash of the token, at most a number of them."""

    def __init__(self, client: Client, clock: Callable[[], float] = time.monotonic) -> None:
        self._client, self._clock = client, clock
        self._known: dict[bytes, tuple[User | None, float]] = {}
        self._pending: dict[bytes, asyncio.Task[User | None]] = {}
        self._turns = asyncio.Semaphore(timing.ACCESS_REVIEWS_AT_ONCE)

    def knows(self, token: str) -> bool:
        """Whether the answer for a token is known without another review."""
        key = token_hash(token)
        known = self._known.get(key)
        return key in self._pending or (known is not None and self._clock() < known[1])

    async def user(self, token: str) -> User | None:
        """The user of a token; None: it is not valid. Raises ReviewUnavailable."""
        if not is_token(token):
            return None
        key = token_hash(token)
        known = self._known.get(key)
        if known is not None and self._clock() < known[1]:
            return known[0]
        pending = self._pending.get(key)
        if pending is None:  # requests with the same token share one review, whichever of them is cancelled
            pending = self._pending[key] = asyncio.create_task(self._reviewed(key, token))
            pending.add_done_callback(lambda _: self._pending.pop(key, None))
        return await asyncio.shield(pending)

    async def _reviewed(self, key: bytes, token: str) -> User | None:
        try:
            async with asyncio.timeout(timing.ACCESS_REVIEW_TIMEOUT), self._turns:
                user = await self._review(token)
        except TimeoutError:
            raise ReviewUnavailable(f"no answer within {timing.ACCESS_REVIEW_TIMEOUT:g} s") from None
        except (KubeError, ValueError) as problem:
            raise ReviewUnavailable(str(problem)) from None
        self._keep(key, user)
        return user

    def _keep(self, key: bytes, user: User | None) -> None:
        self._known.pop(key, None)
        if len(self._known) >= timing.TOKENS_KEPT:
            del self._known[next(iter(self._known))]
        kept = timing.ACCESS_DENIED_KEPT if user is None else timing.ACCESS_GRANTED_KEPT
        self._known[key] = user, self._clock() + kept

    async def _review(self, token: str) -> User | None:
        body = {
            "apiVersion": TOKEN_REVIEWS.api_version,
            "kind": TOKEN_REVIEWS.kind,
            "spec": {"token": token},
        }
        answer = await self._client.create(TOKEN_REVIEWS, body, as_type=_TokenReview)
        found = answer.status.user
        if not answer.status.authenticated or found is None or not found.username:
            return None
        return User(found.username, found.uid, found.groups or (), found.extra or {})


def is_token(text: str) -> bool:
    """Whether a text can be a bearer token: others are not sent to the API server."""
    return 0 < len(text) <= timing.SIGN_IN_BODY and text.isascii() and text.isprintable() and " " not in text


def token_hash(token: str) -> bytes:
    """What a token is kept by."""
    return hashlib.sha256(token.encode(errors="replace")).digest()


def user_key(user: User) -> bytes:
    """Equal for users about whom the API server answers the same. The identifier of a single token, which
    each new token of a ServiceAccount has, does not count: rights are not granted to it."""
    extra = {key: value for key, value in user.extra.items() if key != _CREDENTIAL_ID}
    return hashlib.sha256(msgspec.json.encode(replace(user, extra=extra), order="deterministic")).digest()
