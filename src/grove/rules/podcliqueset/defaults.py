"""Defaults of a PodCliqueSet, for the mutating webhook, in addition to the defaults of its schema.

On an update the defaults depend on the stored set: `minAvailable` and `roleName` are immutable, so a missing
value means the stored one; and a stored pod spec without defaults gets none, since a changed template would
replace its pods.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Body = dict[str, Any]

_TERMINATION_DELAY = "4h0m0s"
_POD_SPEC = {"restartPolicy": "Always", "terminationGracePeriodSeconds": 30}


def default_set(body: Body, old: Body | None = None) -> Body:
    """The raw object with all defaults; the same object if nothing was missing. The arguments are never
    changed. `old` is the stored set on an update. Values of a wrong type are kept, and `validation` reports
    them. Never raises."""
    if not isinstance(body, dict):
        return body
    stored = _cliques_by_name(old)
    body = _within(body, "metadata", _metadata)
    return _within(body, "spec", lambda spec: _within(spec, "template", lambda t: _template(t, stored)))


def _metadata(metadata: Body) -> Body:
    return metadata if metadata.get("namespace") else {**metadata, "namespace": "default"}


def _template(template: Body, stored: dict[str, Body]) -> Body:
    template = _each(template, "cliques", lambda clique: _clique(clique, stored))
    template = _each(template, "podCliqueScalingGroups", _group)
    return _filled(
        template,
        {
            "terminationDelay": _TERMINATION_DELAY,
            "headlessServiceConfig": {"publishNotReadyAddresses": True},
        },
    )


def _clique(clique: Body, stored: dict[str, Body]) -> Body:
    name = clique.get("name")
    known = stored.get(name, {}) if isinstance(name, str) else {}
    return _within(clique, "spec", lambda spec: _clique_spec(spec, name, _mapping(known.get("spec"))))


def _clique_spec(spec: Body, name: object, known: Body) -> Body:
    replicas = spec.get("replicas")
    if replicas is None or (replicas == 0 and _is_integer(replicas)):
        spec, replicas = {**spec, "replicas": 1}, 1
    if _is_integer(replicas):
        least = known.get("minAvailable")
        spec = _filled(spec, {"minAvailable": least if _is_integer(least) else replicas})
        spec = _within(spec, "autoScalingConfig", lambda config: _filled(config, {"minReplicas": replicas}))
    role = known.get("roleName") or name
    if isinstance(role, str) and role and spec.get("roleName") in ("", None):
        spec = {**spec, "roleName": role}
    pod_spec = _mapping(known.get("podSpec"))
    wanted = {key: value for key, value in _POD_SPEC.items() if not pod_spec or pod_spec.get(key) is not None}
    return _within(spec, "podSpec", lambda pod: _filled(_without_blank(pod, "restartPolicy"), wanted))


def _group(group: Body) -> Body:
    replicas = group.get("replicas")
    least = 1 if replicas is None else replicas
    if not _is_integer(least):
        return group
    return _within(group, "scaleConfig", lambda config: _filled(config, {"minReplicas": least}))


def _cliques_by_name(body: Body | None) -> dict[str, Body]:
    cliques = _mapping(_mapping(_mapping(body).get("spec")).get("template")).get("cliques")
    named = (clique for clique in (cliques if isinstance(cliques, list) else ()) if isinstance(clique, dict))
    return {clique["name"]: clique for clique in named if isinstance(clique.get("name"), str)}


def _mapping(value: object) -> Body:
    return value if isinstance(value, dict) else {}


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _without_blank(body: Body, key: str) -> Body:
    return {each: value for each, value in body.items() if each != key} if body.get(key) == "" else body


def _filled(body: Body, wanted: Body) -> Body:
    """A copy with the keys that are missing or null; the same object if there are none."""
    missing = {key: value for key, value in wanted.items() if body.get(key) is None}
    return {**body, **missing} if missing else body


def _within(body: Body, key: str, change: Callable[[Body], Body]) -> Body:
    """A copy with the mapping at `key` changed; the same object if `change` returns the same mapping."""
    inner = body.get(key)
    if not isinstance(inner, dict) or (changed := change(inner)) is inner:
        return body
    return {**body, key: changed}


def _each(body: Body, key: str, change: Callable[[Body], Body]) -> Body:
    """A copy with every mapping in the list at `key` changed; the same object if none differs."""
    items = body.get(key)
    if not isinstance(items, list):
        return body
    changed = [change(item) if isinstance(item, dict) else item for item in items]
    if all(new is item for new, item in zip(changed, items, strict=True)):
        return body
    return {**body, key: changed}
