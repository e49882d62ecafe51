"""Plans the HorizontalPodAutoscalers of one replica, for `grove.plan.replica`: one for each clique and group
with an autoscaling configuration, with the name of the object that it scales.

The operator manages bounds, metrics and scale target. The replica count belongs to the autoscaler. `behavior`
is not managed: a set has no field for it, so a value that a user sets on the autoscaler stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Struct

from grove.api.formats import quantities
from grove.api.intents import Create, Delete, Patch
from grove.api.naming import labels
from grove.api.types.common import AutoScalingConfig
from grove.api.types.kind import Kind
from grove.api.types.kubernetes_objects import HorizontalPodAutoscaler
from grove.api.types.podclique import PodClique
from grove.api.types.podcliquescalinggroup import PodCliqueScalingGroup
from grove.plan.desired import objects
from grove.plan.desired.expand import ReplicaLayout
from grove.plan.desired.objects import Body
from grove.plan.ownership.repair import ObjectRepair, object_patch
from grove.plan.snapshot import Snapshot
from grove.plan.writes.builders import create, delete_of_kind, target_of_kind
from grove.plan.writes.collector import WriteCollector
from grove.plan.writes.diff import merge_patch

API_VERSION, KIND = "autoscaling/v2", "HorizontalPodAutoscaler"

_DEFAULT_METRICS = (
    msgspec.Raw(b'{"type":"Resource","resource":{"name":"cpu",'
                b'"target":{"type":"Utilization","averageUtilization":80}}}'),
)  # fmt: skip
"""The metrics that Kubernetes sets if none are given."""
_QUANTITY_FIELDS = ("value", "averageValue")


class Autoscaler(Struct, frozen=True, gc=False):
    """An autoscaler that a replica should have, by the name and kind of its scale target."""

    name: str
    target_kind: Kind
    config: AutoScalingConfig
    replicas: int
    """The replicas of the template: `minReplicas` if the configuration gives none."""


def plan_autoscalers(
    snapshot: Snapshot, layout: ReplicaLayout, repair: ObjectRepair, writes: WriteCollector
) -> None:
    """Creates missing autoscalers, repairs changed ones and deletes surplus ones. A scale target that the
    same plan creates is created before its autoscaler."""
    wanted = {autoscaler.name: autoscaler for autoscaler in _wanted(layout)}
    for name, autoscaler in wanted.items():
        if (found := snapshot.autoscalers.get(name)) is None:
            scaled = repair.created(autoscaler.target_kind, name)
            after = (scaled.id,) if scaled else repair.fences()
            writes.add(_create(snapshot, autoscaler, after))
        elif patch := _repair_patch(snapshot, autoscaler, found):
            writes.add(repair.after_confirming_set(patch))
    surplus = [found for name, found in snapshot.autoscalers.items() if name not in wanted]
    if surplus:
        fence = (writes.confirm(snapshot.workload),)
        writes.add_all(delete_autoscaler(found, fence) for found in surplus)


def delete_autoscaler(found: HorizontalPodAutoscaler, after: tuple[str, ...] = ()) -> Delete:
    return delete_of_kind(API_VERSION, KIND, found, after)


def _wanted(layout: ReplicaLayout) -> Iterator[Autoscaler]:
    for clique in layout.cliques:
        spec = clique.template.spec
        if spec.auto_scaling_config is not None and clique.group is None:
            yield Autoscaler(clique.name, PodClique.KIND, spec.auto_scaling_config, spec.replicas)
    for group in layout.groups:
        if (config := group.template.scale_config) is not None:
            yield Autoscaler(group.name, PodCliqueScalingGroup.KIND, config, group.template.replicas)


def _create(snapshot: Snapshot, wanted: Autoscaler, after: tuple[str, ...]) -> Create:
    metrics = _metrics(wanted)
    spec = _managed_spec(wanted) | ({"metrics": metrics} if metrics else {})
    metadata = _metadata(snapshot, wanted)
    return create({"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": spec}, after)


def _repair_patch(snapshot: Snapshot, wanted: Autoscaler, found: HorizontalPodAutoscaler) -> Patch | None:
    changed = merge_patch(_found_managed_spec(found), _managed_spec(wanted))
    if not _same_metrics(found.spec.metrics, wanted.config.metrics):
        changed["metrics"] = _metrics(wanted) or None
    patch = object_patch(found.metadata, _metadata(snapshot, wanted), changed)
    return Patch(target_of_kind(API_VERSION, KIND, found), patch) if patch else None


def _metadata(snapshot: Snapshot, wanted: Autoscaler) -> Body:
    set_name, component = snapshot.workload.metadata.name, labels.ComponentLabel.AUTOSCALER
    object_labels = labels.for_replica(set_name, snapshot.index, wanted.name, component)
    owners = objects.set_owner_reference(snapshot.workload)
    return objects.metadata(snapshot.workload, wanted.name, object_labels, {}, owners)


def _managed_spec(wanted: Autoscaler) -> Body:
    config = wanted.config
    return {
        "scaleTargetRef": {
            "apiVersion": wanted.target_kind.api_version,
            "kind": wanted.target_kind.name,
            "name": wanted.name,
        },
        "minReplicas": wanted.replicas if config.min_replicas is None else config.min_replicas,
        "maxReplicas": config.max_replicas,
    }


def _metrics(wanted: Autoscaler) -> list[Body]:
    return [objects.to_builtins(metric) for metric in wanted.config.metrics]


def _found_managed_spec(found: HorizontalPodAutoscaler) -> Body:
    return {
        "scaleTargetRef": msgspec.to_builtins(found.spec.scale_target_ref),
        "minReplicas": found.spec.min_replicas,
        "maxReplicas": found.spec.max_replicas,
    }


def _same_metrics(found: tuple[msgspec.Raw, ...], wanted: tuple[msgspec.Raw, ...]) -> bool:
    """Whether two lists of metrics are equal in meaning: the API server normalizes quantities and omits empty
    fields."""
    wanted = wanted or _DEFAULT_METRICS
    return [_normalized(bytes(metric)) for metric in found] == [
        _normalized(bytes(metric)) for metric in wanted
    ]


@lru_cache(maxsize=1024)
def _normalized(metric: bytes) -> Any:
    return _normalized_value(msgspec.json.decode(metric), "")


def _normalized_value(value: Any, key: str) -> Any:
    if isinstance(value, dict):
        parts = {name: _normalized_value(inner, name) for name, inner in value.items()}
        return {name: part for name, part in parts.items() if part not in ({}, [], "", None)}
    if isinstance(value, list):
        return [_normalized_value(inner, "") for inner in value]
    if key in _QUANTITY_FIELDS and isinstance(value, str | int | float):
        try:
            return quantities.parse(value)
        except ValueError:
            return value
    return value
