"""What nodes have for fabric domains, as watches tell of it."""

from __future__ import annotations

import asyncio

import msgspec

from grove.api.cluster import Node, ResourceSlice
from grove.fabrics.survey import Survey
from grove.local.drastandin.words import resource_slice
from grove.operator.channels import Channels
from tests.fabrics.builders import BOTH


def slice_(node, version="1"):
    body = resource_slice(node, "uid")
    body["metadata"] |= {"uid": node, "resourceVersion": version}
    return msgspec.convert(body, ResourceSlice)


def host(name, gpus, version="1", holder=""):
    labels = {"resource.nvidia.com/computeDomain": holder} if holder else {}
    meta = {"name": name, "uid": name, "resourceVersion": version, "labels": {**labels, "zone": "z"}}
    status = {"allocatable": {"nvidia.com/gpu": gpus, "cpu": "64"}}
    return msgspec.convert({"metadata": meta, "status": status}, Node)


async def test_channels_are_counted_and_every_change_of_their_number_is_news(monkeypatch):
    monkeypatch.setattr("grove.operator.channels._MOMENT", 0.0)
    channels, news = Channels(BOTH), asyncio.Queue()
    channels.subscribe(news.put_nowait)
    offers = channels._offers["nvidia"]
    assert not offers.wanted.is_set()
    channels.want("nvidia")
    channels.want("example")  # has no driver, and nothing to look at
    assert offers.wanted.is_set()
    assert channels.count("nvidia") is None
    offers.replace([slice_("a"), slice_("b")], "5")
    assert (channels.count("nvidia"), channels.count("example")) == (2, None)
    assert await asyncio.wait_for(news.get(), 120) == "nvidia"
    offers.apply_event("MODIFIED", slice_("a", "6"))
    assert channels._later is None
    offers.apply_event("DELETED", slice_("b", "7"))
    offers.apply_event("DELETED", slice_("a", "8"))
    assert channels.count("nvidia") == 0
    assert await asyncio.wait_for(news.get(), 120) == "nvidia"
    assert news.empty()  # once for both
    assert channels.survey("nvidia") is None  # nobody looks at nodes
    assert channels.held("nvidia") == {}


async def test_b7_nodes_are_compared_with_channels_where_domains_come_by_themselves():
    channels = Channels(BOTH, automatic=True)
    assert channels._offers["nvidia"].wanted.is_set()
    channels._offers["nvidia"].replace([slice_("a"), slice_("b")], "5")
    assert channels.survey("nvidia") is None
    hosts = channels._hosts
    hosts.replace([host("a", "8", holder="d1"), host("b", "4"), host("c", 8), host("cpu", "0")], "5")
    assert channels.survey("nvidia") == Survey(3, ("c",), 4)
    assert channels.held("nvidia") == {"d1": ["a"]}
    before = channels.survey("nvidia")
    hosts.apply_event("MODIFIED", host("a", "8", "8", holder="d2"))
    assert channels.held("nvidia") == {"d2": ["a"]}
    assert channels.survey("nvidia") is before  # nobody looks again because a node has joined a domain
    assert [dict(node.metadata.labels) for node in hosts] == [{"nvidia": "d2"}, {}, {}, {}]
    channels._offers["nvidia"].apply_event("ADDED", slice_("c", "9"))
    assert channels.survey("nvidia") == Survey(3, (), 4)
    hosts.apply_event("MODIFIED", host("b", "8", "9"))
    assert channels.survey("nvidia") == Survey(3, (), 8)
