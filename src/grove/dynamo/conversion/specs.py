"""The spec of a DynamoGraphDeployment in both versions: `services` by name, or `components` as a list.

Each function takes what is preserved of the version that it converts to, and returns the converted spec with
what has to be preserved of the version that it was written in.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from grove.dynamo.conversion.components import to_service
from grove.dynamo.conversion.preservation import Body, lost, restored, same
from grove.dynamo.conversion.services import merged_env, to_component

SERVICES, COMPONENTS = "services", "components"
ALPHA_ONLY = frozenset({"envs", "pvcs", SERVICES})
"""Fields of a spec that v1beta1 does not have."""
_BETA_ONLY = frozenset({"env", COMPONENTS})


def to_beta(spec: Body, preserved: Body | None = None) -> tuple[Body, Body]:
    """The spec in v1beta1, and what to preserve of v1alpha1. `preserved`: of v1beta1."""
    found = _beta(spec, preserved or {})
    return found, _to_preserve(spec, found, SERVICES, _alpha, _lost_services)


def to_alpha(spec: Body, preserved: Body | None = None) -> tuple[Body, Body]:
    """The spec in v1alpha1, and what to preserve of v1beta1. `preserved`: of v1alpha1."""
    found = _alpha(spec, preserved or {})
    return found, _to_preserve(spec, found, COMPONENTS, _beta, _lost_components)


def _to_preserve(spec: Body, converted: Body, key: str, back: Any, lost_items: Any) -> Body:
    """As little as possible: only what is lost, unless the rest is needed to restore it."""
    plain = back(converted, {})
    found = lost(spec, plain)
    if key in found:
        found[key] = lost_items(found[key], plain.get(key))
    return found if same(back(converted, found), spec) else spec


def _beta(spec: Body, preserved: Body) -> Body:
    kept = preserved.get(COMPONENTS)
    rest = restored(_rest(spec, SERVICES), _rest(preserved, COMPONENTS), _beta_rest, _alpha_rest)
    services = spec.get(SERVICES)
    if isinstance(services, dict):
        return {**rest, COMPONENTS: list(_components(services, kept if isinstance(kept, list) else []))}
    return rest if COMPONENTS not in preserved or isinstance(kept, list) else {**rest, COMPONENTS: kept}


def _components(services: Body, preserved: list[Any]) -> Iterator[Any]:
    """The components in the preserved order, then the others by name. A preserved entry that cannot be a
    service stays where it was."""
    left = {name: service for name, service in sorted(services.items()) if isinstance(service, dict)}
    for name, entry in _by_name(preserved):
        if name is None:
            duplicate = entry.get("name") if isinstance(entry, dict) else None
            if not isinstance(duplicate, str) or duplicate in services:
                yield entry
        elif name in left:
            yield restored(left.pop(name), entry, partial(to_component, name), to_service)
    for name, service in left.items():
        yield to_component(name, service)


def _by_name(components: list[Any]) -> Iterator[tuple[str | None, Any]]:
    """The components with their names; None where a service cannot have the name, or there is one already."""
    seen: set[str] = set()
    for entry in components:
        name = entry.get("name") if isinstance(entry, dict) else None
        if isinstance(name, str) and name not in seen:
            seen.add(name)
            yield name, entry
        else:
            yield None, entry


def _lost_components(components: Any, converted_back: Any) -> Any:
    """The components to preserve: of one that is not lost, only the name, for the order."""
    if not isinstance(components, list):
        return components
    back = {entry["name"]: entry for entry in converted_back or ()}
    return [
        {"name": name} if name is not None and same(entry, back.get(name)) else entry
        for name, entry in _by_name(components)
    ]


def _alpha(spec: Body, preserved: Body) -> Body:
    kept = preserved.get(SERVICES)
    rest = restored(_rest(spec, COMPONENTS), _rest(preserved, SERVICES), _alpha_rest, _beta_rest)
    components = spec.get(COMPONENTS)
    if not isinstance(components, list):
        return rest if SERVICES not in preserved or isinstance(kept, dict) else {**rest, SERVICES: kept}
    services = kept if isinstance(kept, dict) else {}
    found = {name: value for name, value in services.items() if not isinstance(value, dict)}
    for name, component in _by_name(components):
        if name is not None:
            written = services.get(name)
            known = written if isinstance(written, dict) else {}
            found[name] = restored(component, known, to_service, partial(to_component, name))
    return {**rest, SERVICES: found}


def _lost_services(services: Any, converted_back: Any) -> Any:
    """The services to preserve, each as a whole."""
    if not isinstance(services, dict):
        return services
    return lost(services, converted_back if isinstance(converted_back, dict) else {})


def _rest(spec: Body, key: str) -> Body:
    return {name: value for name, value in spec.items() if name != key}


def _beta_rest(spec: Body) -> Body:
    found = {key: value for key, value in spec.items() if key not in ALPHA_ONLY | _BETA_ONLY}
    lists = [value for key in ("envs", "env") if isinstance(value := spec.get(key), list)]
    if lists:
        found["env"] = merged_env(*lists) if len(lists) > 1 else lists[0]
    return _renamed_topology(found, "topologyProfile", "clusterTopologyName")


def _alpha_rest(spec: Body) -> Body:
    found = {key: value for key, value in spec.items() if key not in ALPHA_ONLY | _BETA_ONLY}
    if isinstance(spec.get("env"), list):
        found["envs"] = spec["env"]
    return _renamed_topology(found, "clusterTopologyName", "topologyProfile")


def _renamed_topology(spec: Body, old: str, new: str) -> Body:
    topology = spec.get("topologyConstraint")
    if not isinstance(topology, dict) or old not in topology or new in topology:
        return spec
    renamed = {new if key == old else key: value for key, value in topology.items()}
    return {**spec, "topologyConstraint": renamed}
