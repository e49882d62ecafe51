"""The properties of a wire type: the input of CRD schemas, API reference and values schema."""

from __future__ import annotations

import types
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin, get_type_hints

import msgspec

from grove.api.crds import descriptions
from grove.api.wire import EncodedDefault, Facet, KubernetesSchema, Wire

NO_DEFAULT = object()


class FieldType(NamedTuple):
    """The type of a field without `Annotated` and `None`, and the facets from `Annotated`."""

    type: Any
    facets: tuple[Facet, ...]
    kubernetes_schema: KubernetesSchema | None

    @property
    def display_name(self) -> str:
        """The name of the type in documentation; empty if the Python name serves."""
        return next((facet.display_name for facet in self.facets if facet.display_name), "")


class Property(NamedTuple):
    """One field, as it is encoded in JSON."""

    name: str
    shape: FieldType
    description: str
    required: bool
    default: object
    """The value that the API server sets if the field is omitted, or `NO_DEFAULT`."""


def properties(struct: type[Wire]) -> list[Property]:
    """The fields of a wire type, in the order of their declaration."""
    hints = get_type_hints(struct, include_extras=True)
    docs = descriptions.field_descriptions(struct)
    return [_property(field, hints[field.name], docs) for field in msgspec.structs.fields(struct)]


def shape(annotation: Any) -> FieldType:
    """`Annotated[int, a] | None` is an int with facet a."""
    if get_origin(annotation) in (Union, types.UnionType):
        (annotation,) = (each for each in get_args(annotation) if each is not types.NoneType)
    if get_origin(annotation) is not Annotated:
        return FieldType(annotation, (), None)
    inner, *extras = get_args(annotation)
    facets = tuple(each for each in extras if isinstance(each, Facet))
    return FieldType(
        inner, facets, next((each for each in extras if isinstance(each, KubernetesSchema)), None)
    )


def _property(field: msgspec.structs.FieldInfo, annotation: Any, docs: dict[str, str]) -> Property:
    written = field.default_factory if isinstance(field.default_factory, EncodedDefault) else None
    return Property(
        name=field.encode_name,
        shape=shape(annotation),
        description=docs.get(field.name, ""),
        required=field.required or (written is not None and not written.by_server),
        default=written.value if written and written.by_server else NO_DEFAULT,
    )
