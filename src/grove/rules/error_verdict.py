"""No object, however it looks, makes a rule raise: what cannot be judged is refused in words."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

from grove.rules.decode import ObjectFormatError
from grove.rules.model import AdmissionResult, invalid

P = ParamSpec("P")


def never_raises(rule: Callable[P, AdmissionResult]) -> Callable[P, AdmissionResult]:
    """The rule, with a verdict also on objects that do not fit their type or are nested without end."""

    @wraps(rule)
    def verdict(*args: P.args, **kwargs: P.kwargs) -> AdmissionResult:
        try:
            return rule(*args, **kwargs)
        except ObjectFormatError as wrong:
            return AdmissionResult(tuple(wrong.errors))
        except RecursionError:
            return AdmissionResult((invalid("spec", "(object)", "is nested too deeply"),))

    return verdict
