"""The stand-in for the DRA driver: the nodes of a domain, and the annotations that inject faults."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import msgspec
import pytest

from grove.api.types.kubernetes_objects import Node
from grove.kube.client.client import Client
from grove.local.standins.dra.domain_nodes import clique_of, entries, summary
from grove.local.standins.dra.driver import DraStandIn


def node(name: str = "a", clique: str = "c.0", **notes: str) -> Node:
    annotations = {f"dra-standin/{key.replace('_', '-')}": value for key, value in notes.items()}
    labels = {"nvidia.com/gpu.clique": clique} if clique else {}
    return msgspec.convert({"metadata": {"name": name, "labels": labels, "annotations": annotations}}, Node)


@pytest.mark.parametrize(
    ("notes", "ready", "again"),
    [
        ({}, False, True),
        ({"delay": "0"}, True, False),
        ({"delay": "3600"}, False, True),
        ({"never_ready": "true", "delay": "0"}, False, False),
        ({"flip": "true", "delay": "0"}, False, False),
    ],
)
async def test_node_readiness_in_domain(notes: dict[str, str], ready: bool, again: bool) -> None:
    standin = DraStandIn(cast(Client, None))
    found, moment = standin._readiness("uid", [node(**notes)])
    assert found == {"a": ready}
    assert (moment is not None) is again
    if moment is not None:
        assert moment > asyncio.get_running_loop().time() - 1.0


def test_node_index_is_stable_and_lowest_free() -> None:
    ready = {"a": True, "b": True, "c": False, "d": True}
    first = entries([node("a"), node("b"), node("d", "")], {}, ready)
    assert [(one["name"], one["cliqueID"], one["index"]) for one in first] == [
        ("a", "c.0", 0),
        ("b", "c.0", 1),
        ("d", "", -1),
    ]
    known: dict[str, dict[str, Any]] = {"b": first[1]}
    later = entries([node("b"), node("c"), node("a", clique="c.1")], known, ready)
    assert [(one["name"], one["index"], one["status"]) for one in later] == [
        ("a", 0, "Ready"),
        ("b", 1, "Ready"),
        ("c", 0, "NotReady"),
    ]
    assert [summary(first), summary(later), summary([])] == ["Ready", "NotReady", "Ready"]


def test_annotation_overrides_partition() -> None:
    note = {"metadata": {"name": "a", "annotations": {"dra-standin/clique": "other.1"}}}
    assert clique_of(msgspec.convert(note, Node)) == "other.1"
    assert clique_of(node("a")) == "c.0"
