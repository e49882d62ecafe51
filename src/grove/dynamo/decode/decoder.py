"""Decodes a DynamoGraphDeployment from raw JSON. Wrong types and unknown fields are errors with a path."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, get_args, get_origin, get_type_hints

import msgspec

from grove.api.crds import openapi, type_properties
from grove.api.crds.type_properties import FieldType
from grove.api.wire import Wire
from grove.dynamo.api.common import DeploymentTopology
from grove.dynamo.api.graph_deployment import DynamoGraphDeployment, GraphSpec
from grove.dynamo.decode import schema_check
from grove.rules.decode import ObjectFormatError
from grove.rules.model import FieldError, forbidden, invalid, required

Body = dict[str, Any]

_POD = "io.k8s.api.core.v1.PodSpec"
_CONTAINER = "io.k8s.api.core.v1.Container"
_METADATA = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"

_HINTS = {
    "topologyConstraints": (
        "unknown field; use topologyConstraint: one object in spec, one in each constrained component"
    ),
    "pvc": "unknown field; declare the claim in spec.pvcs and mount it with volumeMounts",
    "serviceOverrides": "unknown field; set topologyConstraint in the component itself",
    "enabled": "unknown field; an object that is present is enabled: remove this field",
}
"""Fields of earlier drafts of this API, with their replacement."""
_FORMERLY = {"topologyConstraints": DeploymentTopology}


def read(body: Any) -> DynamoGraphDeployment:
    """Decode a graph. Raises ObjectFormatError with all format errors."""
    try:
        return _read(body)
    except RecursionError:
        raise ObjectFormatError([invalid("spec", "(object)", "is nested too deeply")]) from None


def _read(body: Any) -> DynamoGraphDeployment:
    if not isinstance(body, dict) or not isinstance(body.get("metadata"), dict):
        raise ObjectFormatError([required("metadata")])
    body = {key: _without_nulls(body[key]) for key in ("metadata", "spec", "status") if key in body}
    if body.get("spec") is None:
        raise ObjectFormatError([required("spec")])
    if errors := list(_of_struct(body["spec"], GraphSpec, "spec")) or list(_of_pods(body["spec"])):
        raise ObjectFormatError(errors)
    try:
        return msgspec.convert(body, type=DynamoGraphDeployment)
    except (msgspec.MsgspecError, ValueError) as problem:
        raise ObjectFormatError([invalid("metadata", "(object)", f"cannot be read: {problem}")]) from None


def decode_errors(body: Any) -> tuple[FieldError, ...]:
    """The format errors of a graph. Never raises."""
    try:
        read(body)
    except ObjectFormatError as format_error:
        return tuple(format_error.errors)
    return ()


def new_errors(errors: tuple[FieldError, ...], old: Any) -> tuple[FieldError, ...]:
    """The format errors that the old object did not have."""
    known = set(map(str, decode_errors(old)))
    return tuple(error for error in errors if str(error) not in known)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    return [_without_nulls(inner) for inner in value] if isinstance(value, list) else value


def _of_struct(value: Any, struct: type[Wire], path: str) -> Iterator[FieldError]:
    if not isinstance(value, dict):
        yield schema_check.type_error(path, value, "an object")
        return
    shapes = _shapes(struct)
    for name, inner in value.items():
        if name in shapes:
            yield from _of_field(inner, shapes[name], f"{path}.{name}")
        elif name in _HINTS:
            yield forbidden(f"{path}.{name}", _HINTS[name])
            if name in _FORMERLY:
                yield from _of_struct(inner, _FORMERLY[name], f"{path}.{name}")
        else:
            yield schema_check.unknown_field(path, name, tuple(shapes))


@cache
def _shapes(struct: type[Wire]) -> dict[str, FieldType]:
    hints = get_type_hints(struct, include_extras=True)
    return {
        each.encode_name: type_properties.shape(hints[each.name]) for each in msgspec.structs.fields(struct)
    }


def _of_field(value: Any, shape: FieldType, path: str) -> Iterator[FieldError]:
    origin, inner = get_origin(shape.type), get_args(shape.type)
    if shape.kubernetes_schema is not None:
        yield from schema_check.type_errors(value, openapi.embedded(shape.kubernetes_schema.definition), path)
    elif origin is tuple:
        yield from _of_list(value, type_properties.shape(inner[0]), path)
    elif origin is dict:
        yield from _of_map(value, type_properties.shape(inner[1]), path)
    elif isinstance(shape.type, type) and issubclass(shape.type, Wire):
        yield from _of_struct(value, shape.type, path)
    else:
        yield from schema_check.type_errors(value, {"type": _SCALARS[shape.type]}, path)


_SCALARS = {str: "string", int: "integer", bool: "boolean"}


def _of_list(value: Any, inner: FieldType, path: str) -> Iterator[FieldError]:
    if not isinstance(value, list):
        yield schema_check.type_error(path, value, "a list")
        return
    for index, item in enumerate(value):
        yield from _of_field(item, inner, f"{path}[{index}]")


def _of_map(value: Any, inner: FieldType, path: str) -> Iterator[FieldError]:
    if not isinstance(value, dict):
        wanted = "an object"
        if path == "spec.services":
            wanted = "an object that maps names to services; v1beta1 has a list, spec.components"
        yield schema_check.type_error(path, value, wanted)
        return
    for name, item in value.items():
        yield from _of_field(item, inner, f"{path}[{name}]")


def _of_pods(spec: Body) -> Iterator[FieldError]:
    """Checks the pod specs, containers and metadata that are embedded in both versions."""
    pod = openapi.embedded(_POD)
    optional = {key: value for key, value in pod.items() if key != "required"}
    main = {key: value for key, value in openapi.embedded(_CONTAINER).items() if key != "required"}
    extra = {**optional, "properties": {**pod["properties"], "mainContainer": main}}
    for index, component in enumerate(spec.get("components", ())):
        path, template = f"spec.components[{index}].podTemplate", component.get("podTemplate", {})
        yield from schema_check.type_errors(template.get("spec"), optional, f"{path}.spec")
        yield from schema_check.type_errors(
            template.get("metadata"), openapi.embedded(_METADATA), f"{path}.metadata"
        )
    for name, service in spec.get("services", {}).items():
        yield from schema_check.type_errors(
            service.get("extraPodSpec"), extra, f"spec.services[{name}].extraPodSpec"
        )
