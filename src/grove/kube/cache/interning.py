"""Stores equal values of cached objects once, which saves most of the memory of a cache of thousands.

The conditions of pods that became ready in the same second are equal, and so are the containers of pods
created from one template, and the names in labels and owners. A value that equals one that was seen lately is
replaced by it; no other reader of the object notices, as wire types are immutable.

Raw JSON is a view of the message that it was received in, and keeps all of that alive: it is copied out.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, partial
from sys import intern
from typing import Any, TypeVar

from msgspec import Raw, Struct, inspect
from msgspec.json import encode
from msgspec.structs import force_setattr

from grove import timing
from grove.api.meta import Interned

T = TypeVar("T")
Interner = Callable[[Any], Any]

_UNIQUE_FIELDS = frozenset({"uid", "resource_version", "hostname"})  # text that hardly any two objects share
_pool: dict[Hashable, Any] = {}
_suspended = ContextVar("suspended", default=False)
_EMPTY_DICT: dict[str, Any] = {}  # can be shared, since cached objects are never changed


@contextmanager
def suspended() -> Iterator[None]:
    """Store objects as they are: for processes that end soon, where the time counts and not the memory."""
    token = _suspended.set(True)
    try:
        yield
    finally:
        _suspended.reset(token)


def intern_fields(found: T) -> T:
    """Replace the values of an object's fields by equal ones seen before. Returns the same object."""
    assert isinstance(found, Struct)
    if not _suspended.get():
        _intern_all(found)
    return found


def _intern_all(found: Struct) -> Struct:
    for name, interner in _interners(type(found)):
        value = getattr(found, name)
        if value:
            interned = interner(value)
        elif type(value) is dict:
            interned = _EMPTY_DICT
        else:
            continue
        if interned is not value:
            force_setattr(found, name, interned)
    return found


@cache
def _interners(kind: type[Struct]) -> tuple[tuple[str, Interner], ...]:
    """The fields of a type whose values can be shared, with the function that does it."""
    described = inspect.type_info(kind)
    assert isinstance(described, inspect.StructType)
    interners = (
        (field.name, _interner(field.type)) for field in described.fields if field.name not in _UNIQUE_FIELDS
    )
    return tuple((name, interner) for name, interner in interners if interner is not None)


def _interner(described: inspect.Type) -> Interner | None:
    match described:
        case inspect.StrType():
            return intern
        case inspect.DictType():
            return _intern_dict_values
        case inspect.RawType():
            return _copy_raw
        case inspect.StructType(cls=kind) if issubclass(kind, Interned):
            return _value_interner(described, _intern_all)
        case inspect.StructType(cls=kind):
            return _intern_all if _interners(kind) else None
        case inspect.VarTupleType(item_type=item):
            return _tuple_interner(item)
        case inspect.UnionType(types=types):
            interners = [interner for each in types if (interner := _interner(each)) is not None]
            return interners[0] if len(interners) == 1 else None
    return None


def _tuple_interner(item: inspect.Type) -> Interner | None:
    interner = _interner(item)
    if interner is None:
        return None
    if isinstance(item, inspect.StructType) and issubclass(item.cls, Interned):
        return _value_interner(item, partial(_intern_each, interner))
    return partial(_intern_each, interner)


def _value_interner(described: inspect.StructType, interner: Interner) -> Interner:
    """An interner for values of a type, or for tuples of them, by hash or by their JSON."""
    if _hashable(described):
        return partial(_intern_value, interner)
    return partial(_intern_by_json, described.cls, interner)


def _hashable(described: inspect.Type) -> bool:
    match described:
        case inspect.StructType(fields=fields):
            return all(_hashable(field.type) for field in fields)
        case inspect.VarTupleType(item_type=item):
            return _hashable(item)
        case inspect.UnionType(types=types):
            return all(map(_hashable, types))
    return not isinstance(described, inspect.DictType | inspect.RawType | inspect.AnyType)


def _intern_each(interner: Interner, values: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(map(interner, values))


def _intern_dict_values(values: dict[str, Any]) -> dict[str, Any]:
    for name, value in values.items():
        if type(value) is str:
            values[name] = intern(value)
    return values


def _copy_raw(raw: Raw) -> Raw:
    text = bytes(raw)
    interned: Raw = _get_or_add(text, Raw, text)
    return interned


def _intern_value(interner: Interner, value: Hashable) -> Any:
    return _get_or_add(value, interner, value)


def _intern_by_json(kind: type[Struct], interner: Interner, value: Any) -> Any:
    return _get_or_add((kind, encode(value)), interner, value)


def _get_or_add(key: Hashable, interner: Interner, value: Any) -> Any:
    """The equal value that was seen before, or this one, which is remembered."""
    known = _pool.get(key)
    if known is None:
        if len(_pool) >= timing.INTERNED_VALUES:
            _pool.clear()
        known = _pool[key] = interner(value)
    return known
