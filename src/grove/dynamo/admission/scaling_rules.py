"""Validation of the replicas of components that autoscalers scale."""

from __future__ import annotations

from collections.abc import Iterator

from grove.api.field_errors import FieldError, forbidden
from grove.dynamo import naming
from grove.dynamo.api.scaling_adapter import ScalingAdapter
from grove.dynamo.graph import Graph

_ACCOUNT = "system:serviceaccount:"


def on_update(old: Graph, new: Graph, by: str) -> Iterator[FieldError]:
    """Rejects updates of replicas that an adapter decides, except by the planner component. `by` is the
    requesting user; empty for the operator itself."""
    if not by or (by.startswith(_ACCOUNT) and by.endswith(f":{naming.PLANNER_ACCOUNT}")):
        return
    before = {each.name: each for each in old.components}
    for component in new.components:
        known = before.get(component.name)
        if known is None or not (known.has_scaling_adapter or component.has_scaling_adapter):
            continue
        if known.replicas != component.replicas:
            name = f"{ScalingAdapter.KIND.name} {naming.child_object(new, component)}"
            why = f"{name} sets {known.replicas} replicas: scale the adapter, and leave out replicas here"
            yield forbidden(f"{component.path}.replicas", why)
