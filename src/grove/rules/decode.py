"""Decodes raw JSON objects into the types that the rules read, and reports all fields of a wrong type at
once, each by its path.

An object from the API server has passed its schema and takes one decode. Only an object that fails to decode
is walked field by field. Null means that a field is missing. Values are not validated here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import StrEnum
from functools import cache
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Raw, Struct, field

from grove.api.crds import type_properties
from grove.api.types.clustertopology import ClusterTopologySpec
from grove.api.types.podcliqueset import PodCliqueSetSpec, PodCliqueSetTemplate, StartupType
from grove.api.wire import Wire
from grove.rules.model import ErrorType, FieldError, invalid, required, unsupported

Body = dict[str, Any]
_SUFFIX_LENGTH = 5
"""How many characters the API server appends to `generateName`."""
_DECODE_ERRORS = (msgspec.MsgspecError, TypeError, ValueError, OverflowError)


class Metadata(Wire, frozen=True):
    """The fields of an object's metadata that the rules read."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)

    @property
    def effective_name(self) -> str:
        """The name, or a name as long as the one that the API server generates from `generateName`."""
        return self.name or (self.generate_name and self.generate_name + "x" * _SUFFIX_LENGTH)


class Variable(Wire, frozen=True):
    """An environment variable of a container."""

    name: str = ""


class PodContainer(Wire, frozen=True):
    """A container."""

    name: str = ""
    env: tuple[Variable, ...] = ()


class CliquePodSpec(Wire, frozen=True):
    """The fields of a clique's pod spec that the rules read."""

    containers: tuple[PodContainer, ...] = ()
    init_containers: tuple[PodContainer, ...] = ()
    scheduler_name: str = ""
    node_name: str = ""
    restart_policy: str = ""
    topology_spread_constraints: tuple[Raw, ...] = ()


class _Devices(Wire, frozen=True):
    requests: tuple[Raw, ...] = ()


class _ClaimSpec(Wire, frozen=True):
    devices: _Devices = _Devices()


class ClaimTemplate(Wire, frozen=True):
    """The fields of a ResourceClaimTemplate that the rules read."""

    spec: _ClaimSpec = _ClaimSpec()


class Workload(Struct, frozen=True):
    """A decoded PodCliqueSet."""

    metadata: Metadata
    spec: PodCliqueSetSpec
    pods: tuple[CliquePodSpec, ...]
    """The pod specs of the cliques, in the order of `spec.template.cliques`."""
    claims: tuple[ClaimTemplate, ...]
    """The templates of the claims, in the order of `spec.template.resourceClaimTemplates`."""

    @property
    def template(self) -> PodCliqueSetTemplate:
        """The template of one replica."""
        return self.spec.template


class DecodedTopology(Wire, frozen=True, kw_only=True):
    """A decoded ClusterTopology or ClusterTopologyBinding."""

    metadata: Metadata = Metadata()
    spec: ClusterTopologySpec


class _Set(Wire, frozen=True, kw_only=True):
    metadata: Metadata = Metadata()
    spec: PodCliqueSetSpec


class ObjectFormatError(ValueError):
    """The object does not have the types of its schema; `errors` has one entry for each field that
    differs."""

    def __init__(self, errors: list[FieldError]) -> None:
        self.errors = errors
        super().__init__(", ".join(map(str, errors)))


T = TypeVar("T")


def workload(body: object) -> Workload:
    """Decodes a PodCliqueSet; raises ObjectFormatError."""
    return _read(body, _workload, _Set)


def topology(body: object) -> DecodedTopology:
    """Decodes a ClusterTopology or ClusterTopologyBinding; raises ObjectFormatError."""
    return _read(body, lambda raw: _decoded(raw, DecodedTopology), DecodedTopology)


_PODS = msgspec.json.Decoder(CliquePodSpec)
_CLAIMS = msgspec.json.Decoder(ClaimTemplate)
_RAW_TYPES = {"podSpec": CliquePodSpec, "templateSpec": ClaimTemplate}
"""The type of fields that the API types keep as raw JSON, by field name."""


def _read(body: object, parse: Callable[[object], T], kind: type) -> T:
    try:
        return parse(body)
    except _DECODE_ERRORS:
        wrong = list(_type_errors(body, kind, ""))
    if not wrong:
        try:
            return parse(_without_nulls(body))
        except _DECODE_ERRORS as error:
            wrong = [invalid("spec", None, f"cannot be read: {error}")]
    raise ObjectFormatError(wrong)


def _workload(body: object) -> Workload:
    read = _decoded(body, _Set)
    template = read.spec.template
    return Workload(
        metadata=read.metadata,
        spec=read.spec,
        pods=tuple(_PODS.decode(clique.spec.pod_spec) for clique in template.cliques),
        claims=tuple(_CLAIMS.decode(claim.template_spec) for claim in template.resource_claim_templates),
    )


def _decoded(body: object, kind: type[T]) -> T:
    # Status is not validated here, and often the larger part of the object.
    chosen = (
        {key: body[key] for key in ("metadata", "spec") if key in body} if isinstance(body, dict) else body
    )
    return msgspec.json.decode(msgspec.json.encode(chosen), type=kind)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    return [_without_nulls(inner) for inner in value] if isinstance(value, list) else value


@cache
def _fields(kind: type) -> tuple[tuple[str, Any, bool], ...]:
    """For each field its name in JSON, its type, and whether it is required."""
    hints = get_type_hints(kind, include_extras=True)
    return tuple(
        (each.encode_name, type_properties.shape(hints[each.name]).type, each.required)
        for each in msgspec.structs.fields(kind)
    )


def _type_errors(value: Any, kind: Any, path: str) -> Iterator[FieldError]:
    """Errors for values whose type is not that of their field."""
    origin, inner = get_origin(kind), get_args(kind)
    if kind is Raw:
        kind = _RAW_TYPES.get(path.rpartition(".")[2], Raw)
    if kind is Raw or (isinstance(kind, type) and issubclass(kind, Wire)):
        yield from _object_type_errors(value, kind, path)
    elif origin is tuple:
        if not isinstance(value, list):
            yield _type_error(path, value, "a list")
        else:
            item_kind = type_properties.shape(inner[0]).type
            for index, item in enumerate(value):
                yield from _type_errors(item, item_kind, f"{path}[{index}]")
    elif origin is dict:
        yield from _label_type_errors(value, path)
    else:
        yield from _scalar_type_errors(value, kind, path)


def _object_type_errors(value: Any, kind: Any, path: str) -> Iterator[FieldError]:
    if not isinstance(value, dict):
        yield _type_error(path, value, "an object")
    elif kind is not Raw:
        for name, inner, needed in _fields(kind):
            below = f"{path}.{name}" if path else name
            if value.get(name) is not None:
                yield from _type_errors(value[name], inner, below)
            elif needed:
                yield required(below)


def _label_type_errors(value: Any, path: str) -> Iterator[FieldError]:
    if not isinstance(value, dict):
        yield _type_error(path, value, "an object")
        return
    for key, inner in value.items():
        if not isinstance(key, str):
            yield invalid(path, str(key), "keys must be text")
        elif not isinstance(inner, str):
            yield _type_error(f"{path}.{key}", inner, "text")


def _scalar_type_errors(value: Any, kind: type, path: str) -> Iterator[FieldError]:
    if issubclass(kind, StrEnum):
        if not isinstance(value, str):
            yield _type_error(path, value, "text")
        elif value not in (choices := tuple(each.value for each in kind)):
            yield _not_a_choice(path, value, kind, choices)
    elif kind is bool or isinstance(value, bool):
        if not (kind is bool and isinstance(value, bool)):
            yield _type_error(path, value, _TYPE_NAMES[kind])
    elif not isinstance(value, kind):
        yield _type_error(path, value, _TYPE_NAMES[kind])
    elif isinstance(value, str) and not _is_text(value):
        yield FieldError(path, ErrorType.INVALID, "(text)", "must be valid Unicode")


def _not_a_choice(path: str, value: str, kind: type, choices: tuple[str, ...]) -> FieldError:
    if kind is StartupType:
        return invalid(path, value, f"can only be one of {', '.join(choices)}")
    return unsupported(path, value, choices)


_OBJECT = "object"
_TYPE_NAMES = {str: "text", int: "a whole number", bool: "true or false"}


def _is_text(value: str) -> bool:
    """Whether the string can be encoded: JSON escapes can decode to lone surrogates, which cannot."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _type_error(path: str, value: Any, wanted: str) -> FieldError:
    if value is None:
        return required(path or _OBJECT)
    shown = "(object)" if isinstance(value, dict) else "(list)" if isinstance(value, list) else value
    return invalid(path or _OBJECT, shown, f"must be {wanted}")
