"""Compares a value with the wire types."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from functools import cache
from typing import Any, NamedTuple, get_args, get_origin, get_type_hints

import msgspec

from grove.api.crds import type_properties
from grove.api.crds.type_properties import FieldType
from grove.api.field_errors import FieldError, invalid, required, unsupported
from grove.api.shapes.type_errors import (
    LIST,
    OBJECT,
    is_of_type,
    type_error,
    type_name,
    unicode_errors,
    unknown_field,
)
from grove.api.wire import Wire


class StructField(NamedTuple):
    """A field of a wire type, as it is encoded in JSON."""

    shape: FieldType
    required: bool


@cache
def struct_fields(struct: type[Wire]) -> dict[str, StructField]:
    """The fields of a wire type, by name. Shared: callers must not change it."""
    hints = get_type_hints(struct, include_extras=True)
    return {
        each.encode_name: StructField(type_properties.shape(hints[each.name]), each.required)
        for each in msgspec.structs.fields(struct)
    }


@cache
def _item_shape(kind: Any) -> FieldType:
    """The type of the items of a tuple, or of the values of a dict."""
    arguments = get_args(kind)
    return type_properties.shape(arguments[1] if get_origin(kind) is dict else arguments[0])


def is_struct(kind: Any) -> bool:
    """Whether a type is a wire type."""
    return isinstance(kind, type) and issubclass(kind, Wire)


class StructReader:
    """Reports all differences between a value and a type. Subclasses override what is not the same for all
    documents: unknown fields, raw JSON, and some messages."""

    root = "object"
    """The path of the whole value in errors."""
    reports_unknown_fields = True

    def errors(self, value: Any, kind: Any, path: str = "") -> Iterator[FieldError]:
        """Errors for values whose type is not that of their field, and for missing fields."""
        return self._errors(value, type_properties.shape(kind), path)

    def unknown_field_errors(
        self, path: str, name: str, value: Any, known: Iterable[str]
    ) -> Iterator[FieldError]:
        """Errors for a field that the type does not have."""
        del value
        yield unknown_field(path, name, known)

    def raw_errors(self, value: Any, shape: FieldType, path: str) -> Iterator[FieldError]:
        """Errors for a value that the types keep as raw JSON, which has to be an object."""
        if shape.type is msgspec.Raw and not isinstance(value, dict):
            yield self.type_error(path, value, OBJECT)

    def type_error(self, path: str, value: Any, wanted: str) -> FieldError:
        """The error for a value of a wrong type."""
        return type_error(path, value, wanted)

    def choice_error(self, path: str, value: Any, choices: type[StrEnum]) -> FieldError:
        """The error for a value that is none of the choices."""
        if not isinstance(value, str):
            return self.type_error(path, value, type_name(str))
        return unsupported(path, value, tuple(each.value for each in choices))

    def _errors(self, value: Any, shape: FieldType, path: str) -> Iterator[FieldError]:
        kind, origin = shape.type, get_origin(shape.type)
        if value is None:
            yield required(path or self.root)
        elif is_struct(kind):
            yield from self._struct_errors(value, kind, path)
        elif origin is tuple:
            yield from self._list_errors(value, _item_shape(kind), path)
        elif origin is dict:
            yield from self._map_errors(value, _item_shape(kind), path)
        elif kind in (msgspec.Raw, object, Any):
            yield from self.raw_errors(value, shape, path)
        elif issubclass(kind, StrEnum):
            if value not in tuple(kind):
                yield self.choice_error(path, value, kind)
        elif not is_of_type(value, kind):
            yield self.type_error(path, value, type_name(kind))
        else:
            yield from unicode_errors(path, value)

    def _struct_errors(self, value: Any, kind: type[Wire], path: str) -> Iterator[FieldError]:
        if not isinstance(value, dict):
            yield self.type_error(path or self.root, value, OBJECT)
            return
        fields = struct_fields(kind)
        for name in value if self.reports_unknown_fields else ():
            if name not in fields:
                yield from self.unknown_field_errors(_below(path, name), str(name), value[name], fields)
        for name, (shape, needed) in fields.items():
            if value.get(name) is not None:
                yield from self._errors(value[name], shape, _below(path, name))
            elif needed:
                yield required(_below(path, name))

    def _list_errors(self, value: Any, item: FieldType, path: str) -> Iterator[FieldError]:
        if not isinstance(value, list):
            yield self.type_error(path, value, LIST)
            return
        for index, inner in enumerate(value):
            yield from self._errors(inner, item, f"{path}[{index}]")

    def _map_errors(self, value: Any, item: FieldType, path: str) -> Iterator[FieldError]:
        if not isinstance(value, dict):
            yield self.type_error(path, value, OBJECT)
            return
        for key, inner in value.items():
            if not isinstance(key, str):
                yield invalid(path, str(key), "keys must be text")
            else:
                yield from self._errors(inner, item, f"{path}[{key}]")


def _below(path: str, name: object) -> str:
    return f"{path}.{name}" if path else str(name)
