"""Validation of `rollingUpdate` of cliques and groups, and of durations."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from functools import lru_cache

from grove.api.field_errors import FieldError, invalid
from grove.api.formats import durations
from grove.api.types.common import RollingUpdate
from grove.api.types.podcliqueset import PodCliqueSetSpec, UpdateStrategyType

_MAX_LENGTH = 64
"""The longest text that is parsed as a duration; no duration needs more characters."""
_NO_DURATION = 'must be a duration such as "4h0m0s" or "90s"'


def errors(path: str, update: RollingUpdate | None) -> Iterator[FieldError]:
    """Errors of the `rollingUpdate` of a clique or group."""
    if update is None:
        return
    if update.max_unavailable is not None and update.max_unavailable <= 0:
        yield invalid(f"{path}.maxUnavailable", update.max_unavailable, "must be greater than 0")
    if update.progress_deadline is not None:
        yield from duration(f"{path}.progressDeadline", update.progress_deadline)


def warnings(path: str, update: RollingUpdate | None, spec: PodCliqueSetSpec) -> Iterator[str]:
    """A warning if `rollingUpdate` is set with an update strategy that ignores it."""
    if update is not None and spec.update_strategy.type is UpdateStrategyType.ON_DELETE:
        yield f"{path} is ignored: with updateStrategy OnDelete pods are replaced when they are deleted"


def duration(path: str, text: str) -> Iterator[FieldError]:
    """Errors of a duration, which must be greater than 0."""
    if wrong := _wrong(text) if len(text) <= _MAX_LENGTH else _NO_DURATION:
        yield invalid(path, text, wrong)


@lru_cache(maxsize=256)
def _wrong(text: str) -> str:
    try:
        return "" if durations.parse(text) > timedelta() else "must be greater than 0"
    except (ValueError, OverflowError):
        return _NO_DURATION
