"""Fields of Dynamo's API that the operator does not implement: rejected, never ignored silently."""

from __future__ import annotations

from collections.abc import Iterator

from grove.api.field_errors import FieldError, forbidden
from grove.dynamo.api.graph_deployment import DynamoGraphDeployment

_DEPLOYMENT_FIELDS = {
    "provider_override": "set topologyConstraint instead",
    "experimental": "remove the field",
}
_COMPONENT_FIELDS = {
    "provider_override": "set topologyConstraint instead",
    "experimental": "remove the field",
}
_SERVICE_FIELDS = {
    **_COMPONENT_FIELDS,
    "ingress": "create an Ingress for the frontend's Service",
    "gpu_memory_service": "remove the field",
    "failover": "remove the field",
    "checkpoint": "remove the field",
}
_SWITCHED = ("ingress", "gpu_memory_service", "failover", "checkpoint")
"""Fields of v1alpha1 that are accepted if they are switched off."""


def _camel(word: str) -> str:
    head, *tail = word.split("_")
    return head + "".join(part.capitalize() for part in tail)


FIELDS = frozenset(map(_camel, (*_DEPLOYMENT_FIELDS, *_SERVICE_FIELDS)))
"""The names of all unsupported fields."""


def errors(found: DynamoGraphDeployment) -> Iterator[FieldError]:
    """An error for every unsupported field that is set."""
    yield from _of(found.spec, _DEPLOYMENT_FIELDS, "spec")
    for index, component in enumerate(found.spec.components):
        path = f"spec.components[{index}]"
        yield from _of(component, _COMPONENT_FIELDS, path)
        yield from _of_roles(component.multinode, path)
    for name, service in found.spec.services.items():
        yield from _of(service, _SERVICE_FIELDS, f"spec.services[{name}]", alpha=True)
        yield from _of_roles(service.multinode, f"spec.services[{name}]")


def warnings(found: DynamoGraphDeployment) -> Iterator[str]:
    """A warning for every field that Dynamo itself ignores."""
    for name, service in found.spec.services.items():
        if service.autoscaling is not None:
            yield f"spec.services[{name}].autoscaling is ignored: set replicas"
        if service.dynamo_namespace:
            yield f"spec.services[{name}].dynamoNamespace is ignored: it follows from the name of the graph"


def _of(written: object, fields: dict[str, str], path: str, *, alpha: bool = False) -> Iterator[FieldError]:
    for field, instead in fields.items():
        value = getattr(written, field)
        if value in (None, ""):
            continue
        if alpha and field in _SWITCHED and isinstance(value, dict) and not value.get("enabled"):
            continue
        inner = [f".{name}" for name in value] if field == "experimental" and isinstance(value, dict) else []
        for name in inner or [""]:
            yield forbidden(f"{path}.{_camel(field)}{name}", f"not supported: {instead}")


def _of_roles(multinode: object, path: str) -> Iterator[FieldError]:
    for role in ("leader", "worker"):
        if getattr(multinode, role, None) is not None:
            yield forbidden(f"{path}.multinode.{role}", "not supported: set topologyConstraint instead")
