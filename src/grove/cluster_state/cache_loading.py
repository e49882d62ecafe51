"""Fills the operator's caches from the state of a cluster, so that the operator's own code reads it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

from grove.api.naming.well_known import HOSTNAME
from grove.api.types.cluster.scheduling_pod import SchedulingPod, SchedulingStatus
from grove.api.types.kubernetes_objects import Node
from grove.api.types.pod import PodPhase
from grove.cluster_state.kinds import listed_caches
from grove.cluster_state.model import ClusterState, KindState
from grove.kube.cache.cache import Cache
from grove.kube.cache.interning import suspended
from grove.kube.client import label_selector
from grove.kube.client.resource import NODES, PODS, Resource
from grove.kube.client.undecodable import Undecodable
from grove.operator.caches.registry import Caches

_Skipped = dict[Resource, list[Undecodable]]
_ENDED = frozenset({PodPhase.SUCCEEDED, PodPhase.FAILED})
_BY_DRIVER = "spec.driver="


class _PhasedStatus(SchedulingStatus, frozen=True):
    phase: str = ""


class _PhasedPod(SchedulingPod, frozen=True):
    status: _PhasedStatus = _PhasedStatus()


def load_caches(state: ClusterState, caches: Caches) -> ClusterState:
    """Fill empty caches. A kind that is not served is absent, one that could not be read has the reason as
    its list error. Nodes are listed again when more of their labels are required (`list_nodes`). Returns the
    state with the names of objects that are in no cache because they do not fit their type."""
    skipped: _Skipped = {}
    with suspended():
        _load_all(state, caches, skipped)
    return state.with_skipped(skipped) if skipped else state


def _load_all(state: ClusterState, caches: Caches, skipped: _Skipped) -> None:
    if caches.devices is not None:
        caches.devices.require()
        _load(state, caches.devices.classes, skipped)  # first: slices keep the attributes that they compare
    for cache in listed_caches(caches):
        _load(state, cache, skipped)
    if caches.cluster_pods is not None and state.kind(PODS).listed:
        pods, wrong = caches.cluster_pods, list[Undecodable]()
        pods.replace(map(pods.compact, _running(state, wrong)), "")
        _add(skipped, PODS, wrong)
    levels = chain.from_iterable(each.spec.levels for each in (*caches.topologies, *caches.topology_bindings))
    caches.nodes.require((HOSTNAME, *(level.key for level in levels)))  # now: later they are listed again
    _add(skipped, NODES, list_nodes(state, caches))


def list_nodes(state: ClusterState, caches: Caches) -> list[Undecodable]:
    """List the nodes with the labels that are required by now, if they could be read. Returns those that do
    not fit their type."""
    skipped: list[Undecodable] = []
    if state.kind(NODES).listed:
        with suspended():
            caches.nodes.use_list(state.objects(NODES, Node, skipped))
    return skipped


def _add(skipped: _Skipped, resource: Resource, found: list[Undecodable]) -> None:
    if found:
        skipped.setdefault(resource, []).extend(found)


def _running(state: ClusterState, skipped: list[Undecodable]) -> Iterator[SchedulingPod]:
    """The pods that use a node, or may: those that have ended use nothing."""
    return (each for each in state.objects(PODS, _PhasedPod, skipped) if each.status.phase not in _ENDED)


def _load(state: ClusterState, cache: Cache[Any], skipped: _Skipped) -> None:
    found = state.kind(cache.resource)
    if not found.served:
        cache.clear()
    elif found.problem:
        cache.mark_unlistable(found.problem)
    else:
        wrong = list[Undecodable]()
        cache.replace(_objects(state, cache, found, wrong), "")
        wrong = [each for each in wrong if label_selector.parse(cache.labels)(each.metadata.labels)]
        cache.undecodable |= {each.key: each for each in wrong}  # not logged: commands report them
        _add(skipped, cache.resource, wrong)


def _objects(
    state: ClusterState, cache: Cache[Any], found: KindState, skipped: list[Undecodable]
) -> Iterator[Any]:
    matches, driver = label_selector.parse(cache.labels), ""
    if cache.fields.startswith(_BY_DRIVER):
        driver = cache.fields.removeprefix(_BY_DRIVER)
    for each in state.objects(found.resource, cache.as_type, skipped):
        if matches(each.metadata.labels) and (not driver or each.spec.driver == driver):
            yield each
