"""Decodes raw JSON objects into the types that the rules read, and reports all fields of a wrong type at
once, each by its path.

An object from the API server has passed its schema and takes one decode. Only an object that fails to decode
is walked field by field. Null means that a field is missing. Values are not validated here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Any, ClassVar, TypeVar

import msgspec
from msgspec import Raw, Struct, field

from grove.api.crds.type_properties import FieldType
from grove.api.field_errors import FieldError, invalid
from grove.api.shapes.structs import StructReader
from grove.api.shapes.type_errors import without_nulls
from grove.api.types.clustertopology import ClusterTopologySpec
from grove.api.types.podcliqueset import PodCliqueSetSpec, PodCliqueSetTemplate, StartupType
from grove.api.wire import Wire

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


class PodResources(Wire, frozen=True):
    """The resources of a container or a pod."""

    limits: dict[str, Any] = field(default_factory=dict)
    requests: dict[str, Any] = field(default_factory=dict)


class PodContainer(Wire, frozen=True):
    """A container."""

    name: str = ""
    image: str = ""
    env: tuple[Variable, ...] = ()
    resources: PodResources = PodResources()


class CliquePodSpec(Wire, frozen=True):
    """The fields of a clique's pod spec that the rules read."""

    containers: tuple[PodContainer, ...] = ()
    init_containers: tuple[PodContainer, ...] = ()
    scheduler_name: str = ""
    node_name: str = ""
    restart_policy: str = ""
    priority_class_name: str = ""
    resources: PodResources = PodResources()
    overhead: dict[str, Any] = field(default_factory=dict)
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


class _ObjectReader(StructReader):
    """Reports wrong types in an object that the rules cannot decode; the API server drops unknown fields."""

    reports_unknown_fields = False
    _RAW_TYPES: ClassVar = {"podSpec": CliquePodSpec, "templateSpec": ClaimTemplate}
    """The type of fields that the API types keep as raw JSON, by field name."""

    def raw_errors(self, value: Any, shape: FieldType, path: str) -> Iterator[FieldError]:
        kind = self._RAW_TYPES.get(path.rpartition(".")[2])
        return super().raw_errors(value, shape, path) if kind is None else self.errors(value, kind, path)

    def choice_error(self, path: str, value: Any, choices: type[StrEnum]) -> FieldError:
        if choices is StartupType and isinstance(value, str):
            return invalid(path, value, f"can only be one of {', '.join(choices)}")
        return super().choice_error(path, value, choices)


_READER = _ObjectReader()


def _read(body: object, parse: Callable[[object], T], kind: type) -> T:
    try:
        return parse(body)
    except _DECODE_ERRORS:
        wrong = list(_READER.errors(body, kind))
    if not wrong:
        try:
            return parse(without_nulls(body))
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
