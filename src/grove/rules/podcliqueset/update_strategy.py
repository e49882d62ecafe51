"""What is refused of times and paces: how fast a part is replaced, how long a gang may lack pods."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from functools import lru_cache

from grove.api.formats import durations
from grove.api.types.common import RollingUpdate
from grove.api.types.podcliqueset import PodCliqueSetSpec, UpdateStrategyType
from grove.rules.model import FieldError, invalid

_MAX_LENGTH = 64
"""No duration needs more letters; what is longer is not even parsed."""
_NO_DURATION = 'must be a duration such as "4h0m0s" or "90s"'


def errors(path: str, update: RollingUpdate | None) -> Iterator[FieldError]:
    """What is wrong with the pace of a part's updates."""
    if update is None:
        return
    if update.max_unavailable is not None and update.max_unavailable <= 0:
        yield invalid(f"{path}.maxUnavailable", update.max_unavailable, "must be greater than 0")
    if update.progress_deadline is not None:
        yield from duration(f"{path}.progressDeadline", update.progress_deadline)


def warnings(path: str, update: RollingUpdate | None, spec: PodCliqueSetSpec) -> Iterator[str]:
    """A pace for an update that nobody drives."""
    if update is not None and spec.update_strategy.type is UpdateStrategyType.ON_DELETE:
        yield f"{path} is ignored: with updateStrategy OnDelete pods are replaced when they are deleted"


def duration(path: str, text: str) -> Iterator[FieldError]:
    """What is wrong with a duration that must be longer than nothing."""
    if wrong := _wrong(text) if len(text) <= _MAX_LENGTH else _NO_DURATION:
        yield invalid(path, text, wrong)


@lru_cache(maxsize=256)
def _wrong(text: str) -> str:
    try:
        return "" if durations.parse(text) > timedelta() else "must be greater than 0"
    except (ValueError, OverflowError):
        return _NO_DURATION
