"""Autoscalers of a replica: one for each clique and group that asks for one, named like what it scales.

Ours are its bounds, its metrics and what it scales. The count is the autoscaler's, and so is `behavior`: a
set has no field for it, so whoever sets it on the autoscaler keeps it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Struct

from grove.api import labels, quantities
from grove.api.cliques import PodClique
from grove.api.cluster import HorizontalPodAutoscaler
from grove.api.groups import PodCliqueScalingGroup
from grove.api.intents import Create, Delete, Patch
from grove.api.kind import Kind
from grove.api.parts import AutoScalingConfig
from grove.plan import compose
from grove.plan.compose import Body
from grove.plan.diff import merge_patch
from grove.plan.expand import Shape
from grove.plan.mend import Mender, differences
from grove.plan.snapshot import Snapshot
from grove.plan.targets import create, foreign_target
from grove.plan.writes import Writes

API_VERSION, KIND = "autoscaling/v2", "HorizontalPodAutoscaler"

_WITHOUT_METRICS = (
    msgspec.Raw(b'{"type":"Resource","resource":{"name":"cpu",'
                b'"target":{"type":"Utilization","averageUtilization":80}}}'),
)  # fmt: skip
"""What Kubernetes puts where no metric is written."""
_AMOUNTS = ("value", "averageValue")


class Autoscaler(Struct, frozen=True, gc=False):
    """An autoscaler that a replica should have, by the name and kind of what it scales."""

    name: str
    scales: Kind
    config: AutoScalingConfig
    replicas: int
    """What the template asks for: the fewest, where no other minimum is written."""


def plan_autoscalers(snapshot: Snapshot, shape: Shape, mender: Mender, writes: Writes) -> None:
    """Make, mend and remove. What an autoscaler scales comes before it."""
    wanted = {autoscaler.name: autoscaler for autoscaler in _wanted(shape)}
    for name, autoscaler in wanted.items():
        if (found := snapshot.autoscalers.get(name)) is None:
            scaled = mender.made(autoscaler.scales, name)
            after = (scaled.id,) if scaled else mender.fences()
            writes.add(_made(snapshot, autoscaler, after))
        elif patch := _mended(snapshot, autoscaler, found):
            writes.add(mender.witnessed(patch))
    surplus = [found for name, found in snapshot.autoscalers.items() if name not in wanted]
    if surplus:
        fence = (writes.confirm(snapshot.workload),)
        writes.add_all(delete_autoscaler(found, fence) for found in surplus)


def delete_autoscaler(found: HorizontalPodAutoscaler, after: tuple[str, ...] = ()) -> Delete:
    return Delete(foreign_target(API_VERSION, KIND, found), uid=found.metadata.uid, after=after)


def _wanted(shape: Shape) -> Iterator[Autoscaler]:
    for clique in shape.cliques:
        spec = clique.template.spec
        if spec.auto_scaling_config is not None and clique.group is None:
            yield Autoscaler(clique.name, PodClique.KIND, spec.auto_scaling_config, spec.replicas)
    for group in shape.groups:
        if (config := group.template.scale_config) is not None:
            yield Autoscaler(group.name, PodCliqueScalingGroup.KIND, config, group.template.replicas)


def _made(snapshot: Snapshot, wanted: Autoscaler, after: tuple[str, ...]) -> Create:
    metrics = _written(wanted)
    spec = _terms(wanted) | ({"metrics": metrics} if metrics else {})
    metadata = _metadata(snapshot, wanted)
    return create({"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": spec}, after)


def _mended(snapshot: Snapshot, wanted: Autoscaler, found: HorizontalPodAutoscaler) -> Patch | None:
    changed = merge_patch(_found_terms(found), _terms(wanted))
    if not _same_metrics(found.spec.metrics, wanted.config.metrics):
        changed["metrics"] = _written(wanted) or None
    patch = differences(found.metadata, _metadata(snapshot, wanted), changed)
    return Patch(foreign_target(API_VERSION, KIND, found), patch) if patch else None


def _metadata(snapshot: Snapshot, wanted: Autoscaler) -> Body:
    set_name, component = snapshot.workload.metadata.name, labels.Component.AUTOSCALER
    carried = labels.for_replica(set_name, snapshot.index, wanted.name, component)
    owners = compose.owned_by_set(snapshot.workload)
    return compose.metadata(snapshot.workload, wanted.name, carried, {}, owners)


def _terms(wanted: Autoscaler) -> Body:
    config = wanted.config
    return {
        "scaleTargetRef": {
            "apiVersion": wanted.scales.api_version,
            "kind": wanted.scales.name,
            "name": wanted.name,
        },
        "minReplicas": wanted.replicas if config.min_replicas is None else config.min_replicas,
        "maxReplicas": config.max_replicas,
    }


def _written(wanted: Autoscaler) -> list[Body]:
    return [compose.plain(metric) for metric in wanted.config.metrics]


def _found_terms(found: HorizontalPodAutoscaler) -> Body:
    return {
        "scaleTargetRef": msgspec.to_builtins(found.spec.scale_target_ref),
        "minReplicas": found.spec.min_replicas,
        "maxReplicas": found.spec.max_replicas,
    }


def _same_metrics(found: tuple[msgspec.Raw, ...], wanted: tuple[msgspec.Raw, ...]) -> bool:
    """Whether they mean the same: the server spells amounts its own way, and leaves out what is empty."""
    wanted = wanted or _WITHOUT_METRICS
    return [_meaning(bytes(metric)) for metric in found] == [_meaning(bytes(metric)) for metric in wanted]


@lru_cache(maxsize=1024)
def _meaning(metric: bytes) -> Any:
    return _plain(msgspec.json.decode(metric), "")


def _plain(value: Any, key: str) -> Any:
    if isinstance(value, dict):
        parts = {name: _plain(inner, name) for name, inner in value.items()}
        return {name: part for name, part in parts.items() if part not in ({}, [], "", None)}
    if isinstance(value, list):
        return [_plain(inner, "") for inner in value]
    if key in _AMOUNTS and isinstance(value, str | int | float):
        try:
            return quantities.parse(value)
        except ValueError:
            return value
    return value
