"""Nesting: too deep objects are denied undecoded; the deepest accepted ones need half of the stack."""

from __future__ import annotations

import asyncio
import inspect
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from grove.api.json_depth import MAX_DEPTH, too_deep
from grove.plan.desired import template_hash
from grove.rules.podcliqueset.defaults import default_set
from grove.webhooks.registrations import Path
from tests.webhooks.reviews import GRAPH, SET, TOPOLOGY, Body, respond, review, reviewer, workload

FRAMES = 500
"""Of the 1000 that an interpreter allows by default; a test has up to 100 below it, the operator fewer."""
REVIEWER = reviewer()
TOPOLOGY_BODY = {
    "apiVersion": "grove.io/v1alpha1",
    "kind": "ClusterTopology",
    "metadata": {"name": "t"},
    "spec": {"levels": [{"domain": "rack", "key": "a"}]},
}
MAIN = {"name": "main", "image": "i", "resources": {"limits": {"cpu": "1"}}}
BETA = {
    "apiVersion": "nvidia.com/v1beta1",
    "kind": "DynamoGraphDeployment",
    "metadata": {"name": "g", "namespace": "ns"},
    "spec": {
        "components": [{"name": "w", "type": "worker", "podTemplate": {"spec": {"containers": [MAIN]}}}]
    },
}
ALPHA = {
    "apiVersion": "nvidia.com/v1alpha1",
    "kind": "DynamoGraphDeployment",
    "metadata": {"name": "g", "namespace": "ns"},
    "spec": {"services": {"w": {"componentType": "worker", "extraPodSpec": {"mainContainer": MAIN}}}},
}
RICH = default_set(
    workload(
        resourceClaimTemplates=[{"name": "c", "templateSpec": {"spec": {"devices": {"requests": [{}]}}}}],
        podCliqueScalingGroups=[{"name": "g", "cliqueNames": ["worker"]}],
    )
)
OBJECTS: list[tuple[Body, dict[str, str], tuple[Path, ...]]] = [
    (RICH, SET, (Path.DEFAULT_SET, Path.VALIDATE_SET, Path.AUTHORIZE)),
    (TOPOLOGY_BODY, TOPOLOGY, (Path.VALIDATE_TOPOLOGY,)),
    (BETA, GRAPH, (Path.DEFAULT_GRAPH, Path.VALIDATE_GRAPH)),
    (ALPHA, {**GRAPH, "version": "v1alpha1"}, (Path.DEFAULT_GRAPH, Path.VALIDATE_GRAPH)),
]


def nested(depth: int, form: str) -> Any:
    value: Any = 1
    for level in range(depth):
        value = {"a": value} if form == "objects" or (form == "both" and level % 2) else [value]
    return value


def places(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every JSON object in a document."""
    if isinstance(document, dict):
        yield path
    inner = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in inner:
        if isinstance(value, dict | list):
            yield from places(value, (*path, key))


def put(document: Any, path: tuple[Any, ...], key: str, value: Any) -> Any:
    if not path:
        return {**document, key: value}
    copied = dict(document) if isinstance(document, dict) else list(document)
    copied[path[0]] = put(document[path[0]], path[1:], key, value)
    return copied


@contextmanager
def few_frames() -> Iterator[None]:
    """Limits the stack to FRAMES above this one."""
    before, frame, below = sys.getrecursionlimit(), inspect.currentframe(), 0
    while frame is not None:
        frame, below = frame.f_back, below + 1
    sys.setrecursionlimit(below + FRAMES)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def cases(form: str, depth: int) -> Iterator[tuple[Path, bytes]]:
    """Reviews with a value of this depth at each place of the new or the old object."""
    for body, resource, paths in OBJECTS:
        for place in places(body):
            for key in ("x", "limits"):
                inside = nested(depth - 2 - len(place) - 1, form)
                deep, less = put(body, place, key, inside), put(body, place, key, nested(9, form))
                for path in paths:
                    yield path, json.dumps(review("CREATE", deep, None, resource)).encode()
                    yield path, json.dumps(review("UPDATE", deep, less, resource)).encode()
                    yield path, json.dumps(review("UPDATE", less, deep, resource)).encode()


@pytest.mark.parametrize("form", ["arrays", "objects", "both"])
def test_deepest_accepted_object_needs_half_the_stack(form: str) -> None:
    loop = asyncio.new_event_loop()
    try:
        for path, body in cases(form, MAX_DEPTH):
            assert not too_deep(body)
            with few_frames():
                response = loop.run_until_complete(respond(REVIEWER, path, body))
            message = response["status"].get("message", "")
            assert "nest" not in message, body[:300]
            assert "internal error" not in message, body[:300]
    finally:
        loop.close()


@pytest.mark.parametrize("form", ["arrays", "objects", "both"])
def test_hash_of_deepest_spec_needs_half_the_stack(form: str) -> None:
    spec = {"containers": [], "affinity": nested(MAX_DEPTH - 9, form)}
    text = json.dumps(spec).encode()
    template_hash.spec_digest.cache_clear()
    with few_frames():
        assert template_hash.spec_digest(text)


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 1_500, 100_000])
@pytest.mark.parametrize("opening", ["[", '{"a":'])
async def test_too_deep_object_is_denied_in_one_line(depth: int, opening: str) -> None:
    deep = opening * depth + "1" + ("]" if opening == "[" else "}") * depth
    for body, resource, paths in OBJECTS:
        for new, old in (("deep", None), ("deep", "plain"), ("plain", "deep")):
            texts = {"deep": {**body, "x": "DEEP"}, "plain": body, None: None}
            sent = json.dumps(go_review("UPDATE", texts[new], texts[old], resource), separators=(",", ":"))
            for path in paths:
                response = await respond(REVIEWER, path, sent.replace('"DEEP"', deep).encode())
                assert not response["allowed"]
                assert response["status"]["code"] == 400
                message = response["status"]["message"]
                assert f"more than {MAX_DEPTH} levels" in message
                assert message.startswith("x[0][0]" if opening == "[" else "x.a.a") or old == "deep"
                assert len(message.splitlines()) == 1


def go_review(operation: str, new: Any, old: Any, resource: dict[str, str]) -> Body:
    """A review as an API server encodes it: the kind comes first."""
    body = review(operation, new, old, resource)
    return {"kind": body["kind"], "apiVersion": body["apiVersion"], "request": body["request"]}
