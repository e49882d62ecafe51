"""Turns exceptions of a rule into a verdict: an object that cannot be validated is refused with a message."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

from grove.api.field_errors import invalid
from grove.rules.decode import ObjectFormatError
from grove.rules.model import AdmissionResult

P = ParamSpec("P")


def never_raises(rule: Callable[P, AdmissionResult]) -> Callable[P, AdmissionResult]:
    """Decorates a rule: it refuses objects that cannot be decoded or exceed the recursion limit."""

    @wraps(rule)
    def verdict(*args: P.args, **kwargs: P.kwargs) -> AdmissionResult:
        try:
            return rule(*args, **kwargs)
        except ObjectFormatError as malformed:
            return AdmissionResult(tuple(malformed.errors))
        except RecursionError:
            return AdmissionResult((invalid("spec", "(object)", "is nested too deeply"),))

    return verdict
