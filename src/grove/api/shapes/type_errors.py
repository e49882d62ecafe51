"""Errors for values of a wrong type and for unknown fields: the words that all readers of JSON share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import Any

from grove.api.field_errors import ErrorType, FieldError, forbidden, invalid

OBJECT, LIST = "an object", "a list"
_NAMES = {
    dict: OBJECT,
    list: LIST,
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
}


def type_name(kind: type) -> str:
    """The type in messages to users."""
    return _NAMES[kind]


def is_of_type(value: Any, kind: type) -> bool:
    """Whether a value has a type; true and false are no numbers, and a whole number is a number."""
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, int | float if kind is float else kind)


def type_error(path: str, value: Any, wanted: str) -> FieldError:
    """The error for a value of a wrong type; objects and lists are not quoted."""
    quoted = "(object)" if isinstance(value, dict) else "(list)" if isinstance(value, list) else value
    return invalid(path, quoted, f"must be {wanted}")


def unicode_errors(path: str, value: Any) -> Iterator[FieldError]:
    """An error for text that cannot be encoded: JSON escapes can decode to lone surrogates."""
    if isinstance(value, str) and not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            yield FieldError(path, ErrorType.INVALID, "(text)", "must be valid Unicode")


def unknown_field(path: str, name: str, known: Iterable[str]) -> FieldError:
    """The error for an unknown field, with the most similar known one."""
    near = get_close_matches(name, list(known), 1)
    return forbidden(path, f"unknown field; did you mean {near[0]}?" if near else "unknown field")


def without_nulls(value: Any) -> Any:
    """The value without fields that are null: null means that a field is missing."""
    if isinstance(value, dict):
        return {key: without_nulls(inner) for key, inner in value.items() if inner is not None}
    return [without_nulls(inner) for inner in value] if isinstance(value, list) else value
