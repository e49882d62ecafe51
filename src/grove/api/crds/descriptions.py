"""Reads the descriptions of API types and fields from class docstrings and the docstring below each field."""

from __future__ import annotations

import ast
import inspect
from functools import cache

from grove.api.wire import Wire


@cache
def field_descriptions(struct: type) -> dict[str, str]:
    """The description of each field, inherited fields included."""
    found: dict[str, str] = {}
    for base in reversed(struct.__mro__):
        if issubclass(base, Wire):
            found |= _docstrings_below_fields(base)
    return found


def class_description(struct: type) -> str:
    """The first paragraph of the class docstring."""
    return _one_line(inspect.getdoc(struct) or "")


def _docstrings_below_fields(struct: type) -> dict[str, str]:
    (definition,) = ast.parse(inspect.getsource(struct)).body
    assert isinstance(definition, ast.ClassDef)
    found = {}
    for field, below in zip(definition.body, definition.body[1:], strict=False):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                found[name] = _one_line(text)
    return found


def _one_line(text: str) -> str:
    paragraph, _, _ = inspect.cleandoc(text).partition("\n\n")
    return " ".join(paragraph.split())
