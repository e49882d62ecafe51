"""Decodes a DynamoGraphDeployment from raw JSON. Wrong types and unknown fields are errors with a path."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from grove.api.crds import openapi
from grove.api.crds.type_properties import FieldType
from grove.api.field_errors import FieldError, forbidden, invalid, required
from grove.api.shapes.schemas import schema_errors
from grove.api.shapes.structs import StructReader
from grove.api.shapes.type_errors import without_nulls
from grove.dynamo.api.common import ALPHA, BETA, MOST_CONFIG_LEVELS, DeploymentTopology
from grove.dynamo.api.graph_deployment import DynamoGraphDeployment, GraphSpec
from grove.dynamo.conversion.objects import as_written
from grove.dynamo.conversion.specs import ALPHA_ONLY
from grove.rules.decode import ObjectFormatError

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
    """Decode a graph, in the version that it was written in. Raises ObjectFormatError with all errors."""
    try:
        return _read(body)
    except RecursionError:
        raise ObjectFormatError([invalid("spec", "(object)", "is nested too deeply")]) from None


def _read(body: Any) -> DynamoGraphDeployment:
    if not isinstance(body, dict) or not isinstance(body.get("metadata"), dict):
        raise ObjectFormatError([required("metadata")])
    written = as_written(body)
    found = {key: without_nulls(written[key]) for key in ("metadata", "spec", "status") if key in written}
    if found.get("spec") is None:
        raise ObjectFormatError([required("spec")])
    errors = _format_errors(found["spec"])
    # Restoring what was written drops fields that its version does not have.
    if errors := errors or (_changed_spec_errors(body) if written is not body else []):
        raise ObjectFormatError(errors)
    try:
        return msgspec.convert(found, type=DynamoGraphDeployment)
    except (msgspec.MsgspecError, ValueError) as problem:
        raise ObjectFormatError([invalid("metadata", "(object)", f"cannot be read: {problem}")]) from None


def _changed_spec_errors(body: Body) -> list[FieldError]:
    """The format errors in v1beta1 of an object that was written in v1alpha1."""
    spec = without_nulls(body["spec"])
    why = f"no field of {BETA}, in which the object has been changed: write it in {ALPHA}"
    other = [forbidden(f"spec.{name}", why) for name in sorted(ALPHA_ONLY & spec.keys())]
    return other or _format_errors(spec)


def _format_errors(spec: Any) -> list[FieldError]:
    errors = list(_READER.errors(spec, GraphSpec, "spec"))
    return errors or [*_pod_errors(spec), *_picker_errors(spec)]


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


class _GraphReader(StructReader):
    """Reports wrong types and unknown fields of a graph, with the replacement of fields of earlier drafts."""

    def unknown_field_errors(
        self, path: str, name: str, value: Any, known: Iterable[str]
    ) -> Iterator[FieldError]:
        if name not in _HINTS:
            yield from super().unknown_field_errors(path, name, value, known)
            return
        yield forbidden(path, _HINTS[name])
        if name in _FORMERLY:
            yield from self.errors(value, _FORMERLY[name], path)

    def raw_errors(self, value: Any, shape: FieldType, path: str) -> Iterator[FieldError]:
        if shape.kubernetes_schema is None:
            return iter(())
        return schema_errors(value, openapi.embedded(shape.kubernetes_schema.definition), path)

    def type_error(self, path: str, value: Any, wanted: str) -> FieldError:
        if path == "spec.services":
            wanted += " that maps names to services; v1beta1 has a list, spec.components"
        return super().type_error(path, value, wanted)


_READER = _GraphReader()


def _pod_errors(spec: Body) -> Iterator[FieldError]:
    """Checks the pod specs, containers and metadata that are embedded in both versions."""
    pod = openapi.embedded(_POD)
    optional = {key: value for key, value in pod.items() if key != "required"}
    main = {key: value for key, value in openapi.embedded(_CONTAINER).items() if key != "required"}
    extra = {**optional, "properties": {**pod["properties"], "mainContainer": main}}
    for index, component in enumerate(spec.get("components", ())):
        path, template = f"spec.components[{index}].podTemplate", component.get("podTemplate", {})
        yield from schema_errors(template.get("spec"), optional, f"{path}.spec")
        yield from schema_errors(template.get("metadata"), openapi.embedded(_METADATA), f"{path}.metadata")
    for name, service in spec.get("services", {}).items():
        yield from schema_errors(service.get("extraPodSpec"), extra, f"spec.services[{name}].extraPodSpec")


def _picker_errors(spec: Body) -> Iterator[FieldError]:
    """Checks that the configurations of endpoint pickers are objects that can be written as YAML."""
    written = [(f"spec.components[{index}]", each) for index, each in enumerate(spec.get("components", ()))]
    written += [(f"spec.services[{name}]", each) for name, each in spec.get("services", {}).items()]
    for path, component in written:
        config = component.get("eppConfig", {}).get("config")
        if config is not None and _levels(config) > MOST_CONFIG_LEVELS:
            why = f"is nested more than {MOST_CONFIG_LEVELS} levels deep"
            yield invalid(f"{path}.eppConfig.config", "(object)", why)


def _levels(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(_levels, inner), default=0)
