"""ReadyCount: ready pods of each clique, counted by label from watch events."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grove.initc.ready_wait import ReadyCount
from grove.initc.watch_stream import WatchInterrupted


def event(
    type_: str, pod: str, clique: str | None = "a", ready: bool = True, terminating: bool = False
) -> bytes:
    metadata: dict[str, Any] = {"name": pod}
    if clique:
        metadata["labels"] = {"grove.io/podclique": clique}
    if terminating:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    status = {
        "conditions": [{"type": "Ready", "status": str(ready)}, {"type": "Initialized", "status": "True"}]
    }
    return json.dumps({"type": type_, "object": {"metadata": metadata, "status": status}}).encode()


NONE = "waiting for a (0 of 2 ready), b (0 of 1 ready)"


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ([], NONE),
        ([event("ADDED", "x"), event("ADDED", "y")], "waiting for b (0 of 1 ready)"),
        ([event("ADDED", "x"), event("ADDED", "y"), event("ADDED", "z", "b")], "all are ready"),
        ([event("ADDED", "x"), event("MODIFIED", "x")], "waiting for a (1 of 2 ready), b (0 of 1 ready)"),
        ([event("ADDED", "a-x", "c")], NONE),
        ([event("ADDED", "a-x", None)], NONE),
        ([event("ADDED", "x", terminating=True)], NONE),
        ([event("ADDED", "x"), event("MODIFIED", "x", ready=False)], NONE),
        ([event("ADDED", "x"), event("DELETED", "x")], NONE),
        ([event("ADDED", "x"), event("MODIFIED", "x", "b")], "waiting for a (0 of 2 ready)"),
    ],
)
def test_ready_count_after_events(events, message):
    count = ReadyCount({"a": 2, "b": 1})
    for line in events:
        count.apply(line)
    assert (str(count), count.complete) == (message, message == "all are ready")


def test_pod_without_status_is_not_ready():
    count = ReadyCount({"a": 1})
    metadata = {"name": "x", "labels": {"grove.io/podclique": "a"}}
    count.apply(json.dumps({"type": "ADDED", "object": {"metadata": metadata}}).encode())
    assert not count.complete


def test_bookmark_is_ignored_and_error_ends_the_watch():
    count = ReadyCount({"a": 1})
    count.apply(b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"5"}}}')
    with pytest.raises(WatchInterrupted, match="too old resource version"):
        count.apply(b'{"type":"ERROR","object":{"message":"too old resource version"}}')


@given(
    st.lists(st.tuples(st.sampled_from("xyz"), st.sampled_from("abc"), st.booleans(), st.booleans())),
    st.integers(1, 3),
)
def test_only_last_event_of_each_pod_counts(events, wanted):
    count = ReadyCount({"a": wanted})
    last = {}
    for pod, clique, ready, gone in events:
        count.apply(event("DELETED" if gone else "MODIFIED", pod, clique, ready))
        last[pod] = clique == "a" and ready and not gone
    assert count.complete == (sum(last.values()) >= wanted)
