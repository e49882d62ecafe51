"""No object, however it looks, makes a rule raise: what cannot be judged is refused in words."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

from grove.rules.model import Verdict, invalid
from grove.rules.shape import Misshapen

P = ParamSpec("P")


def judged(rule: Callable[P, Verdict]) -> Callable[P, Verdict]:
    """The rule, with a verdict also on objects that do not fit their type or are nested without end."""

    @wraps(rule)
    def verdict(*args: P.args, **kwargs: P.kwargs) -> Verdict:
        try:
            return rule(*args, **kwargs)
        except Misshapen as wrong:
            return Verdict(tuple(wrong.errors))
        except RecursionError:
            return Verdict((invalid("spec", "(object)", "is nested too deeply"),))

    return verdict
