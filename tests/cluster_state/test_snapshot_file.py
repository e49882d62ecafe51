"""Snapshot files: what they contain, and files that are none."""

from __future__ import annotations

import json

import msgspec
import pytest
from msgspec.structs import replace

from grove.api.naming import labels
from grove.api.types.podcliqueset import PodCliqueSet
from grove.cluster_state.kinds import GRAPHS
from grove.cluster_state.secret_text import REMOVED
from grove.cluster_state.snapshot_file import SnapshotError, decode, encode, read_file
from grove.kube.client.resource import NODES, PODS
from grove.plan.desired.template_hash import template_hash
from tests.cluster_state.states import SETS, shaped, unreadable, with_objects
from tests.plan.builders import a_set, read_set


def a_secretive_set():
    body = a_set("a:2")
    body["metadata"]["annotations"] = {
        "kubectl.kubernetes.io/last-applied-configuration": "hunter2",
        "grove.io/paused": "true",
    }
    body["metadata"]["managedFields"] = [{"manager": "hunter2"}]
    container = body["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["containers"][0]
    container["env"] = [
        {"name": "TOKEN", "value": "hunter2"},
        {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
    ]
    return body


def test_state_is_read_back() -> None:
    state = unreadable(with_objects(shaped(), SETS, a_set("a:2")), PODS, "no right (403 Forbidden)")
    again = decode(encode(state), "cluster.json")
    assert again.kinds.keys() == state.kinds.keys()
    assert again.kind(PODS).problem == "no right (403 Forbidden)"
    assert len(again.kind(NODES).items) == 8
    assert next(again.objects(SETS, PodCliqueSet)) == read_set(a_set("a:2"))
    assert abs(again.taken_at - state.taken_at) <= 1


def test_secret_values_are_not_written() -> None:
    written = encode(with_objects(shaped(), SETS, a_secretive_set()))
    assert b"hunter2" not in written
    assert REMOVED.encode() in written
    assert b"fieldRef" in written
    assert b"grove.io/paused" in written


def test_pods_stay_up_to_date_without_values() -> None:
    body = a_secretive_set()
    clique = read_set(body).spec.template.cliques[0]
    pod = {
        "metadata": {
            "name": "p",
            "namespace": "ns",
            "labels": {labels.TEMPLATE_HASH: template_hash(clique, "")},
        }
    }
    again = decode(encode(with_objects(with_objects(shaped(), SETS, body), PODS, pod)), "f")
    found = next(again.objects(SETS, PodCliqueSet)).spec.template.cliques[0]
    stored = msgspec.json.decode(again.kind(PODS).items[0])
    assert stored["metadata"]["labels"][labels.TEMPLATE_HASH] == template_hash(found, "")
    assert template_hash(found, "") != template_hash(clique, "")


def renamed(**changed: str) -> bytes:
    return json.dumps({**json.loads(encode(shaped())), **changed}).encode()


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (b" \n", "f: the file is empty: write one with: grove snapshot > cluster.json"),
        (encode(shaped())[:500], "f: not a snapshot of a cluster: it ends too early: write"),
        (b"kind: Pod\n", "f: not a snapshot of a cluster: it is not JSON: write"),
        (b"[1]", "f: not a snapshot of a cluster (no apiVersion, kind missing): write"),
        (b'{"apiVersion": "v1", "kind": "List"}', "f: not a snapshot of a cluster (v1, kind List): write"),
        (renamed(apiVersion="snapshot.grove.io/v2"), "f: version v2 of snapshots is not known to this grove"),
        (renamed(takenAt="yesterday"), "f: not a valid snapshot ("),
        (renamed(takenAt="0001-01-01T00:00:00+23:59"), "f: not a valid snapshot ("),
        (b'{"apiVersion": "\xff"}', "f: not a snapshot of a cluster: it is not JSON: write"),
        (renamed(kinds="none"), "f: not a valid snapshot (Expected `array`"),
        (b"[" * 100_000, "f: "),
    ],
)  # fmt: skip
def test_other_files_are_refused(text, line) -> None:
    with pytest.raises(SnapshotError) as refused:
        decode(text, "f")
    assert str(refused.value).startswith(line)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("item", "name"),
    [
        (5, "an object without a name"),
        ({}, "an object without a name"),
        ({"metadata": {"name": "x", "namespace": "ns", "annotations": None}}, "ns/x"),
        ({"metadata": {"name": "x", "labels": {"a": 5}}}, "x"),
    ],
)
def test_item_that_is_no_object_is_left_out_and_named(item, name) -> None:
    document = json.loads(encode(shaped()))
    next(each for each in document["kinds"] if each["plural"] == "podcliquesets")["items"] = [item]
    state = decode(json.dumps(document).encode(), "f")
    assert state.kind(SETS).items == ()
    assert [str(each) for each in state.unread] == [f"{SETS.label}: cannot be decoded: {name}"]


def test_names_of_undecodable_objects_are_kept() -> None:
    """Those that nest too deeply are not in the file."""
    state = shaped()
    pods = replace(state.kind(PODS), undecodable=("ns/deep",))
    again = decode(encode(replace(state, kinds={**state.kinds, PODS: pods})), "f")
    assert [str(each) for each in again.unread] == ["pods: cannot be decoded: ns/deep"]


def test_missing_file_is_named(tmp_path) -> None:
    with pytest.raises(SnapshotError, match=r"none.json: cannot be read \(No such file or directory\)"):
        read_file(tmp_path / "none.json")


def test_other_annotations_are_not_written() -> None:
    """Only those that the operator reads, also of a domain that ends like one of ours."""
    body = a_set("a:1")
    kept = {"grove.io/a": "1", "nvidia.com/b": "1", "scheduler.grove.io/c": "1"}
    dropped = {"example.com/grove.io": "2", "notgrove.io/d": "2"}
    body["metadata"]["annotations"] = {**kept, **dropped}
    again = decode(encode(with_objects(shaped(), SETS, body)), "f")
    assert next(again.objects(SETS, PodCliqueSet)).metadata.annotations == kept


def test_variables_of_graphs_have_no_values() -> None:
    body = {
        "metadata": {"name": "g"},
        "spec": {"services": {"a": {"envs": [{"name": "K", "value": "hunter2"}]}}},
    }
    assert b"hunter2" not in encode(with_objects(shaped(), GRAPHS, body))
