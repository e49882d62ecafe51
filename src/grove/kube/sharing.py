"""Keep once what many cached objects repeat: most of what a cache of thousands would hold.

The conditions of pods that became ready in the same second are equal, and so are the containers of pods made
from one template, and the names in labels and owners. What equals something that was seen lately is replaced
by it; whoever else holds the object sees no difference, as wire types never change.

Raw JSON is a window on the message that it came in, and keeps all of that alive: it is cut out.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cache, partial
from sys import intern
from typing import Any, TypeVar

from msgspec import Raw, Struct, inspect
from msgspec.json import encode
from msgspec.structs import force_setattr

from grove.api.meta import Repeated

T = TypeVar("T")
Keep = Callable[[Any], Any]

_ALONE = frozenset({"uid", "resource_version", "hostname"})  # text that hardly any other object repeats
_MOST = 1024  # many times what one second brings; then it begins anew
_seen: dict[Hashable, Any] = {}
_nothing: dict[str, Any] = {}  # nobody writes into what is cached


def share(found: T) -> T:
    """Replace what an object contains; the object itself stays."""
    assert isinstance(found, Struct)
    for name, keep in _habits(type(found)):
        value = getattr(found, name)
        if value:
            kept = keep(value)
        elif type(value) is dict:
            kept = _nothing
        else:
            continue
        if kept is not value:
            force_setattr(found, name, kept)
    return found


@cache
def _habits(kind: type[Struct]) -> tuple[tuple[str, Keep], ...]:
    """The fields of a type in which anything can be shared, and how."""
    described = inspect.type_info(kind)
    assert isinstance(described, inspect.StructType)
    habits = ((field.name, _habit(field.type)) for field in described.fields if field.name not in _ALONE)
    return tuple((name, keep) for name, keep in habits if keep is not None)


def _habit(described: inspect.Type) -> Keep | None:
    match described:
        case inspect.StrType():
            return intern
        case inspect.DictType():
            return _share_values
        case inspect.RawType():
            return _cut_out
        case inspect.StructType(cls=kind) if issubclass(kind, Repeated):
            return _as_a_whole(described, share)
        case inspect.StructType(cls=kind):
            return share if _habits(kind) else None
        case inspect.VarTupleType(item_type=item):
            return _habit_of_tuple(item)
        case inspect.UnionType(types=types):
            habits = [keep for each in types if (keep := _habit(each)) is not None]
            return habits[0] if len(habits) == 1 else None
    return None


def _habit_of_tuple(item: inspect.Type) -> Keep | None:
    keep = _habit(item)
    if keep is None:
        return None
    if isinstance(item, inspect.StructType) and issubclass(item.cls, Repeated):
        return _as_a_whole(item, partial(_each, keep))
    return partial(_each, keep)


def _as_a_whole(described: inspect.StructType, keep: Keep) -> Keep:
    """Values of a type, or tuples of them, with a way to know their equals."""
    if _hashable(described):
        return partial(_whole, keep)
    return partial(_whole_by_json, described.cls, keep)


def _hashable(described: inspect.Type) -> bool:
    match described:
        case inspect.StructType(fields=fields):
            return all(_hashable(field.type) for field in fields)
        case inspect.VarTupleType(item_type=item):
            return _hashable(item)
        case inspect.UnionType(types=types):
            return all(map(_hashable, types))
    return not isinstance(described, inspect.DictType | inspect.RawType | inspect.AnyType)


def _each(keep: Keep, values: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(map(keep, values))


def _share_values(values: dict[str, Any]) -> dict[str, Any]:
    for name, value in values.items():
        if type(value) is str:
            values[name] = intern(value)
    return values


def _cut_out(raw: Raw) -> Raw:
    text = bytes(raw)
    kept: Raw = _once(text, Raw, text)
    return kept


def _whole(keep: Keep, value: Hashable) -> Any:
    return _once(value, keep, value)


def _whole_by_json(kind: type[Struct], keep: Keep, value: Any) -> Any:
    return _once((kind, encode(value)), keep, value)


def _once(key: Hashable, keep: Keep, value: Any) -> Any:
    """The equal that was seen before; or this one, from now on."""
    known = _seen.get(key)
    if known is None:
        if len(_seen) >= _MOST:
            _seen.clear()
        known = _seen[key] = keep(value)
    return known
