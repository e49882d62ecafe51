"""Errors at fields of an object or of a document, in the words of Kubernetes."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec
from msgspec import Struct

_MAX_VALUE = 200
_MAX_DETAIL = 1000


class ErrorType(StrEnum):
    """The type of a field error, in the words of Kubernetes
    (`k8s.io/apimachinery/pkg/util/validation/field`)."""

    INVALID = "Invalid value"
    REQUIRED = "Required value"
    DUPLICATE = "Duplicate value"
    FORBIDDEN = "Forbidden"
    NOT_FOUND = "Not found"
    UNSUPPORTED = "Unsupported value"
    TOO_LONG = "Too long"


_WITHOUT_VALUE = frozenset({ErrorType.REQUIRED, ErrorType.FORBIDDEN, ErrorType.TOO_LONG})


class FieldError(Struct, frozen=True):
    """One error at one field; `str` renders it as `path: Invalid value: v: detail`."""

    path: str
    problem: ErrorType
    value: Any = None
    detail: str = ""

    def __str__(self) -> str:
        shown = [] if self.problem in _WITHOUT_VALUE else [_shown(self.value)]
        detail = [_clipped(self.detail, _MAX_DETAIL)] if self.detail else []
        return ": ".join([_clipped(self.path, _MAX_VALUE), self.problem.value, *shown, *detail])


def invalid(path: str, value: Any, detail: str) -> FieldError:
    """A value that is not allowed."""
    return FieldError(path, ErrorType.INVALID, value, detail)


def required(path: str, detail: str = "") -> FieldError:
    """A value that is missing."""
    return FieldError(path, ErrorType.REQUIRED, detail=detail)


def duplicate(path: str, value: Any) -> FieldError:
    """A value that occurs more than once where it must be unique."""
    return FieldError(path, ErrorType.DUPLICATE, value)


def forbidden(path: str, detail: str) -> FieldError:
    """A field that may not be set, or a change that is not allowed."""
    return FieldError(path, ErrorType.FORBIDDEN, detail=detail)


def not_found(path: str, value: Any, detail: str = "") -> FieldError:
    """A reference to a name that does not exist."""
    return FieldError(path, ErrorType.NOT_FOUND, value, detail)


def unsupported(path: str, value: Any, supported: tuple[str, ...]) -> FieldError:
    """A value that is not in the list of supported values."""
    listed = ", ".join(f'"{each}"' for each in supported)
    return FieldError(path, ErrorType.UNSUPPORTED, value, f"supported values: {listed}")


def _shown(value: Any) -> str:
    try:
        text = msgspec.json.encode(value).decode()
    except (TypeError, ValueError, RecursionError):
        return f"({type(value).__name__})"
    return _clipped(text, _MAX_VALUE)


def _clipped(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[:longest] + "..."
