"""The stand-in for the DRA driver: the nodes of a domain, and the annotations that inject faults."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import msgspec
import pytest
from msgspec.structs import replace

from grove.api.meta import ObjectMeta
from grove.api.types.kubernetes_objects import Node
from grove.fabrics.nvidia import CHANNEL_CLASS
from grove.fabrics.provider import Domain
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.local.standins.dra.domain_nodes import clique_of, entries, summary
from grove.local.standins.dra.driver import DraStandIn
from grove.local.standins.dra.faults import DriverFaults


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


def a_domain(**notes: str) -> Domain:
    annotations = {f"dra-standin/{key.replace('_', '-')}": value for key, value in notes.items()}
    return Domain(ObjectMeta("d", "ns", "uid", annotations=annotations))


@pytest.mark.parametrize(
    ("of_driver", "of_domain", "delay"),
    [
        ({}, {}, 0.0),
        ({}, {"template_delay": "5"}, 5.0),
        ({"template_delay": "7"}, {}, 7.0),
        ({"template_delay": "7"}, {"template_delay": "5"}, 5.0),
        ({}, {"skip_template": "true"}, None),
        ({"skip_template": "true"}, {}, None),
    ],
)
async def test_claim_template_is_due_after_its_delay(
    of_driver: dict[str, str], of_domain: dict[str, str], delay: float | None
) -> None:
    faults = DriverFaults()
    faults.cache.replace(
        [Object(replace(a_domain(**of_driver).metadata, name=CHANNEL_CLASS, namespace=""))], "1"
    )
    before = asyncio.get_running_loop().time()
    due = faults.template_due(a_domain(**of_domain))
    assert (due is None) == (delay is None)
    if due is not None and delay is not None:
        assert before + delay <= due <= asyncio.get_running_loop().time() + delay
    assert faults.template_due(a_domain(**of_domain)) == due, "it does not move"


def test_annotation_of_device_class_stops_the_controller() -> None:
    faults, changes = DriverFaults(), []
    faults.subscribe(lambda: changes.append(faults.controller_dead))
    for version, notes in (
        (2, {}),
        (3, {"dead_controller": "true"}),
        (4, {"dead_controller": "true"}),
        (5, {}),
    ):
        meta = replace(
            a_domain(**notes).metadata, name=CHANNEL_CLASS, namespace="", resource_version=str(version)
        )
        faults.cache.apply_event("MODIFIED", Object(meta))
    assert changes == [True, False]
