"""Decides the result of a write that failed. Where the error leaves it open, the object is read.

An existing name, a changed object, a lost reply: in each case a guess is how controllers create a second pod.
The read also updates the cache, so that the next plan is based on the real object. It is tried a few times;
if the server does not answer by then, the outcome is unknown, and the object has to be read before the next
plan of the key (see `keyed_executor`).
"""

from __future__ import annotations

import asyncio
import random
from typing import Any

from grove import timing
from grove.api.intents import Create, Delete, Intent, Patch
from grove.kube.client.client import Client, Object, RequestLimits
from grove.kube.client.decoding import decoder
from grove.kube.client.retry import Backoff
from grove.kube.errors import (
    AlreadyExists,
    Conflict,
    ConnectError,
    KubeError,
    NotFound,
    TooManyRequests,
    UnknownOutcome,
)
from grove.kube.executor.cache_store import ObjectStore
from grove.kube.executor.deferred_values import DeferredValues
from grove.kube.executor.name_conflict import NameHolder, name_conflict_error, name_holder
from grove.kube.executor.outcome import IntentState, Result
from grove.kube.executor.writer import ResourceMapper
from grove.logger import get_logger

log = get_logger("grove.kube.executor.executor")

_READ_LIMITS = RequestLimits(timeout=timing.UNKNOWN_WRITE_READ_TIMEOUT)


class UnknownWriteResolver:
    """Finds out whether failed writes took effect."""

    def __init__(self, client: Client, mapper: ResourceMapper, store: ObjectStore, backoff: Backoff) -> None:
        self._client = client
        self._mapper = mapper
        self._store = store
        self._backoff = backoff
        self._rng = random.Random()  # noqa: S311 - jitter, not secrets

    async def resolve_failed_write(
        self, intent: Intent, deferred: DeferredValues, error: KubeError
    ) -> Result:
        """The result of an intent whose write was answered with an error, or not at all."""
        name = deferred.resolve(intent.target.name)
        if isinstance(error, NotFound) and _is_about(error, name) and not isinstance(intent, Create):
            return self._missing_result(intent, name, error)
        if isinstance(intent, Create) and isinstance(error, AlreadyExists) and intent.may_exist:
            return Result(intent, IntentState.DONE, name)
        if isinstance(intent, Create) and intent.write_only:
            # No watch shows the existing object, or whether this write created it: a retry of the key does.
            state = (
                IntentState.CONFLICT
                if isinstance(error, AlreadyExists) or error.ambiguous
                else IntentState.FAILED
            )
            return Result(intent, state, name, error=error)
        if not (error.ambiguous or isinstance(error, Conflict | AlreadyExists)):
            return Result(intent, IntentState.FAILED, name, error=error)
        try:
            existing = await self._read_current(intent, name)
        except UnknownOutcome as unknown:
            message = f"{error}; reading it failed {timing.UNKNOWN_WRITE_READS} times: {unknown}"
            return Result(intent, IntentState.FAILED, name, error=UnknownOutcome(message))
        except KubeError:
            return Result(intent, IntentState.FAILED, name, error=error)
        if isinstance(intent, Create):
            return self._classify_existing(intent, name, deferred, existing, error)
        if isinstance(error, Conflict):
            return Result(intent, IntentState.CONFLICT, name, error=error)
        if isinstance(intent, Delete) and existing is None:
            return self._deleted_result(intent, name)
        if isinstance(intent, Delete) and _is_terminating(existing, intent.uid):
            return Result(intent, IntentState.DONE, name, intent.uid)
        if isinstance(intent, Patch) and existing is not None and _is_precondition_check(intent, existing):
            return Result(intent, IntentState.DONE, name, existing.metadata.uid)
        return Result(intent, IntentState.FAILED, name, error=error)

    def _missing_result(self, intent: Intent, name: str, error: NotFound) -> Result:
        if not isinstance(intent, Delete):
            return Result(intent, IntentState.CONFLICT, name, error=error)
        return self._deleted_result(intent, name)

    def _deleted_result(self, intent: Delete, name: str) -> Result:
        if intent.uid:
            self._store.mark_deleted(
                self._mapper.resource_of(intent), intent.target.namespace, name, intent.uid
            )
        return Result(intent, IntentState.DONE, name, intent.uid)

    def _classify_existing(
        self, intent: Create, name: str, deferred: DeferredValues, existing: Any, error: KubeError
    ) -> Result:
        """The result of a create whose name exists, if the object still exists."""
        if existing is None:
            state = IntentState.FAILED if error.ambiguous else IntentState.CONFLICT
            return Result(intent, state, name, error=error)
        wanted: Object = decoder(Object).decode(deferred.encode(intent.body))
        match name_holder(wanted.metadata, existing.metadata):
            case NameHolder.OTHER:
                conflict = name_conflict_error(f"create {intent.target.kind} {name}", existing.metadata)
                return Result(intent, IntentState.FAILED, name, error=conflict)
            case NameHolder.OWN:
                self._store.put(self._mapper.resource_of(intent), existing)
                return Result(intent, IntentState.FOUND, name, existing.metadata.uid, existing=existing)
            case NameHolder.TERMINATING:
                # If the cache does not store it, its DELETED event may be over and never enqueue the key.
                cached = self._store.put(self._mapper.resource_of(intent), existing)
                return Result(intent, IntentState.WAITING if cached else IntentState.CONFLICT, name)

    async def _read_current(self, intent: Intent, name: str) -> Any | None:
        """The object, None if it does not exist. Raises UnknownOutcome if the server does not answer."""
        resource = self._mapper.resource_of(intent)
        why: KubeError = UnknownOutcome("not read")
        for attempt in range(timing.UNKNOWN_WRITE_READS):
            if attempt:
                await asyncio.sleep(self._backoff.pause(attempt, self._rng))
            try:
                existing = await self._client.get(
                    resource,
                    name,
                    as_type=self._store.type_of(resource),
                    namespace=intent.target.namespace or None,
                    limits=_READ_LIMITS,
                )
            except NotFound:
                return None
            except KubeError as error:
                if not (error.ambiguous or isinstance(error, ConnectError | TooManyRequests)):
                    raise
                why = error
            else:
                if not isinstance(intent, Create):  # for a create, the owner is checked first
                    self._store.put(resource, existing)
                return existing
        log.warning(
            "outcome of a write unknown", key=intent.id, action="read it again later", reason=str(why)
        )
        raise UnknownOutcome(str(why)) from why


def _is_about(error: NotFound, name: str) -> bool:
    """Whether the object is missing, and not its kind or namespace."""
    details = error.status.details
    return details is not None and details.name == name


def _is_precondition_check(intent: Patch, existing: Any) -> bool:
    """Whether a patch is only a precondition (resourceVersion, UID) that the existing object fulfils."""
    expected = intent.body.get("metadata", {}) if isinstance(intent.body, dict) else {}
    known = {"resourceVersion": existing.metadata.resource_version, "uid": existing.metadata.uid}
    only_precondition = "resourceVersion" in expected and intent.body == {"metadata": expected}
    return only_precondition and bool(expected.items() <= known.items())


def _is_terminating(existing: Any, uid: str) -> bool:
    """Whether the object that was to be deleted is terminating, or replaced by one with another UID."""
    if uid and existing.metadata.uid != uid:
        return True
    return bool(existing.metadata.deletion_timestamp)
