"""The writes that create or update one rendered object, for the planner and the backends."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from grove.api.intents import Create, Delete, Intent, ObjectRef, Patch, Target
from grove.dynamo.api.graph_deployment import DynamoGraphDeployment
from grove.dynamo.graph import Body, Graph
from grove.dynamo.snapshot import ChildObject
from grove.plan.desired.objects import controller_reference


def with_owner(graph: Graph, body: Body) -> Body:
    """The object with the graph as its owner."""
    kind = DynamoGraphDeployment.KIND
    owner = ObjectRef(kind.api_version, kind.name, graph.name, graph.namespace, graph.uid)
    return {**body, "metadata": {**body["metadata"], "ownerReferences": controller_reference(owner)}}


def target(body: Body) -> Target:
    """The target of a write of the object."""
    metadata = body["metadata"]
    return Target(body["apiVersion"], body["kind"], metadata["name"], metadata["namespace"])


def write_for(body: Body, present: ChildObject | None, *, shared: bool = False) -> Intent | None:
    """The write that creates or updates an object, if any. A shared object is created and never updated."""
    if present is None:
        return Create(target(body), body, may_exist=shared)
    if shared or present.metadata.deletion_timestamp is not None:
        return None
    wanted = {key: value for key, value in body.items() if key in _PATCHED_FIELDS}
    wanted["metadata"] = {
        key: body["metadata"][key] for key in ("labels", "annotations") if key in body["metadata"]
    }
    current: Body = {key: getattr(present, key) for key in _PATCHED_FIELDS}
    current["metadata"] = {"labels": present.metadata.labels, "annotations": present.metadata.annotations}
    if contains(wanted, current):
        return None
    if body["kind"] in _RECREATED_KINDS:
        return Delete(target(body), uid=present.metadata.uid)
    return Patch(target(body), wanted)


_RECREATED_KINDS = ("Role", "RoleBinding")
"""Kinds that are deleted and created again if they differ: the operator has no permission to patch roles."""
_PATCHED_FIELDS = ("spec", "data", "rules", "subjects")


def contains(wanted: Any, present: Any) -> bool:
    """Whether all wanted values are present; values that others have added do not matter."""
    if isinstance(wanted, dict):
        if not isinstance(present, dict):
            return not wanted and present is None
        return all(contains(value, present.get(key)) for key, value in wanted.items())
    if isinstance(wanted, list):
        return (
            isinstance(present, list)
            and len(wanted) == len(present)
            and all(contains(*pair) for pair in zip(wanted, present, strict=True))
        )
    return bool(wanted == present) or (wanted in ("", False, 0) and present is None)


def digest(value: Any) -> str:
    """A hash of the data that does not depend on the order of keys."""
    text = msgspec.json.encode(value, order="sorted")
    return hashlib.sha256(text).hexdigest()
