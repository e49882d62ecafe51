"""Interning: equal values are shared, objects stay equal, and no message is kept alive."""

from __future__ import annotations

import sys

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from grove import timing
from grove.api.types.kubernetes_objects import HorizontalPodAutoscaler
from grove.api.types.pod import Pod
from grove.api.types.podclique import PodClique
from grove.kube.cache import interning
from grove.kube.cache.interning import intern_fields


def pod(name: str, *, moment: str = "2026-01-01T00:00:00Z", request: str = "80Mi") -> bytes:
    body = {
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": {"grove.io/podclique": "simple-0-worker", "grove.io/index": name},
            "ownerReferences": [{"apiVersion": "v1", "kind": "PodClique", "name": "w", "uid": "u-1"}],
        },
        "spec": {
            "nodeName": "node-1",
            "containers": [{"name": "main", "resources": {"requests": {"memory": request}}}],
        },
        "status": {
            "conditions": [
                {"type": "PodScheduled", "status": "True"},
                {"type": "Ready", "status": "True", "lastTransitionTime": moment},
            ]
        },
    }
    return msgspec.json.encode(body)


def interned(body: bytes) -> Pod:
    return intern_fields(msgspec.json.decode(body, type=Pod))


def test_values_are_not_shared_while_interning_is_suspended() -> None:
    with interning.suspended():
        one, other = interned(pod("a")), interned(pod("b"))
    assert one == msgspec.json.decode(pod("a"), type=Pod)
    assert one.spec.containers is not other.spec.containers
    assert interned(pod("a")).spec.containers is interned(pod("b")).spec.containers


def test_equal_values_of_two_pods_are_shared() -> None:
    one, other = interned(pod("a")), interned(pod("b"))
    assert one.status.conditions is other.status.conditions
    assert one.spec.containers is other.spec.containers
    assert one.spec.node_name is other.spec.node_name
    assert one.metadata.owner_references is other.metadata.owner_references
    assert one.metadata.annotations is other.metadata.annotations
    label = "grove.io/podclique"
    assert one.metadata.labels[label] is other.metadata.labels[label]


def test_different_values_are_kept_and_the_rest_is_shared() -> None:
    one, other = interned(pod("a")), interned(pod("b", moment="2026-01-01T00:00:01Z", request="81Mi"))
    assert one.status.conditions[0] is other.status.conditions[0]
    assert one.status.conditions[1] != other.status.conditions[1]
    assert other.spec.containers[0].resources.requests == {"memory": "81Mi"}


def clique(name: str) -> bytes:
    return b'{"metadata":{"name":"%s"},"spec":{"podSpec":{"containers":[]}}}' % name.encode()


def test_interned_raw_json_does_not_keep_message_alive() -> None:
    message = clique("a") + b" " * 10_000
    free = sys.getrefcount(message)
    found = msgspec.json.decode(message, type=PodClique)
    assert sys.getrefcount(message) == free + 1, "the decoded object refers to the message"
    intern_fields(found)
    assert sys.getrefcount(message) == free
    assert found.spec.pod_spec == Raw(b'{"containers":[]}')
    assert (
        intern_fields(msgspec.json.decode(clique("b"), type=PodClique)).spec.pod_spec is found.spec.pod_spec
    )


def test_interned_raw_json_in_list_frees_message() -> None:
    message = (
        b'{"metadata":{"name":"a"},"spec":{"scaleTargetRef":{"kind":"PodClique","name":"a"},'
        b'"maxReplicas":2,"metrics":[{"type":"Resource"}]}}'
    )
    free = sys.getrefcount(message)
    found = intern_fields(msgspec.json.decode(message, type=HorizontalPodAutoscaler))
    assert sys.getrefcount(message) == free
    assert found.spec.metrics == (Raw(b'{"type":"Resource"}'),)


def test_intern_pool_is_bounded() -> None:
    for number in range(3 * timing.INTERNED_VALUES):
        interned(pod("a", moment=str(number)))
    assert len(interning._pool) <= timing.INTERNED_VALUES


words = st.sampled_from(["", "a", "b", "True", "1"])
moments = st.none() | words
conditions = st.lists(
    st.fixed_dictionaries({"type": words, "status": words}, optional={"lastTransitionTime": moments}),
    max_size=3,
)
statuses = st.fixed_dictionaries({"name": words, "ready": st.booleans()}, optional={"started": st.booleans()})
quantities = st.dictionaries(words, words, max_size=2)
pods = st.fixed_dictionaries(
    {
        "metadata": st.fixed_dictionaries(
            {"name": words, "labels": quantities, "annotations": quantities},
            optional={"finalizers": st.lists(words, max_size=2), "generation": st.integers(0, 2)},
        ),
        "spec": st.fixed_dictionaries(
            {"containers": st.lists(st.fixed_dictionaries({"resources": st.just({})}), max_size=2)},
            optional={"overhead": quantities, "resources": st.fixed_dictionaries({"requests": quantities})},
        ),
        "status": st.fixed_dictionaries(
            {"conditions": conditions, "containerStatuses": st.lists(statuses, max_size=2)}
        ),
    }
)


@given(st.lists(pods, max_size=5))
def test_interned_objects_equal_decoded_objects(bodies: list[dict[str, object]]) -> None:
    messages = [msgspec.json.encode(body) for body in bodies]
    shared = [interned(message) for message in messages]
    assert shared == [msgspec.json.decode(message, type=Pod) for message in messages]
    for found, message in zip(shared, messages, strict=True):
        alone = msgspec.json.encode(msgspec.json.decode(message, type=Pod))
        assert msgspec.json.encode(found) == alone, "byte for byte: true is not 1"
