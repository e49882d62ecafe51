"""What the pods of a domain say about it: their nodes and labels, their age, whether they have started."""

from __future__ import annotations

from typing import Any

import msgspec

from grove.api.types.kubernetes_objects import Node
from grove.api.types.pod import Pod
from grove.fabrics.domain_pods import NO_PODS, DomainPods, HeldNode
from grove.fabrics.provider import Domain
from grove.operator.caches.fabric_nodes import FabricNodes
from grove.operator.caches.nodes import Nodes
from grove.operator.observers.domain_pods import domain_pods
from tests.fabrics.builders import BOTH

NVIDIA = BOTH.of("nvidia")
HOLDER, PARTITION = NVIDIA.domain_label, NVIDIA.partition_label


def a_time(second: int) -> str:
    return f"1970-01-01T00:00:{second:02}Z"


def a_pod(name: str, node: str = "", *, created: int = 11, started: bool = False, **meta: Any) -> Pod:
    condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": a_time(12)}
    body = {
        "metadata": {"name": name, "creationTimestamp": a_time(created), **meta},
        "spec": {"nodeName": node},
        "status": {
            "conditions": [condition] if node else [],
            "containerStatuses": [{"name": "main", "started": started}],
        },
    }
    return msgspec.convert(body, Pod)


def found(*pods: Pod, **nodes: dict[str, str]) -> DomainPods:
    """What these pods of a domain that lists node `a` say, with the labels of nodes."""
    body = {
        "metadata": {"name": "d", "uid": "d1", "creationTimestamp": a_time(10)},
        "status": {"nodes": [{"name": "a", "cliqueID": "x.0", "status": "Ready"}]},
    }
    cache = Nodes(NVIDIA)
    cache.use_list(
        [
            msgspec.convert({"metadata": {"name": name, "labels": labels}}, Node)
            for name, labels in nodes.items()
        ]
    )
    return domain_pods(FabricNodes(BOTH, cache), NVIDIA, msgspec.convert(body, Domain), pods)


def test_terminating_pods_say_nothing() -> None:
    assert found(a_pod("p", "a", deletionTimestamp=a_time(20))) == NO_PODS


def test_nodes_of_bound_and_of_started_pods_are_listed() -> None:
    said = found(a_pod("p", "a", started=True), a_pod("q", "b"))
    assert (said.nodes, said.started) == ({"a", "b"}, {"a"})
    assert found(a_pod("p", "a"), a_pod("q")).nodes == {"a"}


def test_pods_older_than_the_domain_are_of_a_former_one() -> None:
    said = found(a_pod("q", "b", created=9, started=True), a_pod("p", "a", created=10, started=True))
    assert (said.former, said.started) == (("q",), {"a"})


def test_partitions_of_unlisted_nodes_come_from_labels() -> None:
    nodes = {"a": {PARTITION: "x.9"}, "b": {PARTITION: "x.1"}, "c": {}}
    said = found(*(a_pod(name, name) for name in nodes), **nodes)
    assert said.partitions == {"x.1"}


def test_node_labelled_for_another_domain_is_held() -> None:
    nodes = {"a": {HOLDER: "d1"}, "b": {HOLDER: "another"}, "c": {}}
    said = found(*(a_pod(name, name) for name in nodes), **nodes)
    assert said.held == (HeldNode("b", 12.0),)
