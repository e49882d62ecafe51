"""Secrets for pulling images: which fit, what is kept of them, and when a component is given one."""

from __future__ import annotations

import base64

import msgspec
import pytest
from msgspec.structs import replace

from grove.api.intents import Patch
from grove.dynamo.api.pull_secret import PullSecret, matches_registry, registry_of
from grove.dynamo.reconcile.planner import plan_graph
from grove.dynamo.snapshot import ChildObject
from tests.dynamo.backends import test_lws as without_grove
from tests.dynamo.builders import component, deployment, engine
from tests.dynamo.reconcile.test_planner import done, planned, snapshot

IMAGE = "nvcr.io/nvidia/dynamo:1.4.1"
NGC = frozenset({"nvcr.io"})


def stored(config: bytes, **metadata) -> PullSecret:
    metadata = {"name": "ngc", "namespace": "ns", "uid": "u", "resourceVersion": "7", **metadata}
    data = {".dockerconfigjson": base64.b64encode(config).decode()}
    body = {"metadata": metadata, "type": "kubernetes.io/dockerconfigjson", "data": data}
    return msgspec.json.decode(msgspec.json.encode(body), type=PullSecret)


@pytest.mark.parametrize(
    ("image", "registry"),
    [
        ("nginx", "docker.io"),
        ("nginx:1.2.3", "docker.io"),
        ("library/nginx", "docker.io"),
        ("index.docker.io/library/nginx", "docker.io"),
        ("nvcr.io/nvidia/dynamo:1.4.1", "nvcr.io"),
        ("NVCR.io/nvidia/dynamo@sha256:00", "nvcr.io"),
        ("localhost/mine", "localhost"),
        ("registry:5000/mine:2", "registry:5000"),
        ("my-registry.com:5005/team/mine", "my-registry.com:5005"),
    ],
)
def test_an_image_is_pulled_from_a_registry(image, registry):
    assert registry_of(image) == registry


@pytest.mark.parametrize(
    ("entry", "registry", "same"),
    [
        ("nvcr.io", "nvcr.io", True),
        ("nvcr.io", "nvcr.io:443", False),
        ("*.example.com", "eu.example.com", True),
        ("*.example.com", "a.b.example.com", False),
        ("*.example.com:5000", "eu.example.com", False),
        ("*", "nvcr.io", False),
    ],
)
def test_a_secret_is_for_a_registry(entry, registry, same):
    assert matches_registry(entry, registry) is same


def test_of_a_secret_nothing_is_kept_but_its_registries():
    config = b"""{"auths": {"https://index.docker.io/v1/": {"auth": "dXM6c2VjcmV0"}, "nvcr.io": {},
        "my-registry.com:5005/team": {"password": "hidden"}}}"""
    found = stored(config, annotations={"kubectl.kubernetes.io/last-applied-configuration": "hidden"})
    assert found.registries == {"docker.io", "nvcr.io", "my-registry.com:5005"}
    assert (found.metadata.namespace, found.metadata.name) == ("ns", "ngc")
    assert (found.metadata.uid, found.metadata.resource_version) == ("u", "7")
    kept = repr(found)
    assert not any(secret in kept for secret in ("hidden", "dXM6", "password", "annotations={'"))


@pytest.mark.parametrize("config", [b"", b"{", b"[]", b"\xff", b"{}", b'{"auths": null}', b'{"auths": []}'])
def test_one_that_nobody_can_read_is_for_no_registry(config):
    assert stored(config).registries == frozenset()


def test_one_without_data_is_for_no_registry():
    assert msgspec.convert({"metadata": {"name": "n"}, "data": None}, PullSecret).registries == frozenset()


def pulls(found) -> dict[str, list[str]]:
    """What the cliques of the set are given, by name, as it should be."""
    made = done(found).workload
    spec = msgspec.json.decode(msgspec.json.encode(made.spec))
    return {
        each["name"]: [one["name"] for one in each["spec"]["podSpec"].get("imagePullSecrets", ())]
        for each in spec["template"]["cliques"]
    }


def worker(image: str = IMAGE, **more):
    return component(main={"image": image}, **more)


def graph_of(*components, secrets=None, **more):
    return snapshot(
        deployment(*components), pull_secrets={"ngc": NGC} if secrets is None else secrets, **more
    )


def test_all_that_fit_are_named_sorted_and_once():
    secrets = {"z": NGC, "a": NGC | {"docker.io"}, "other": frozenset({"quay.io"}), "none": frozenset()}
    assert pulls(graph_of(worker(), secrets=secrets)) == {"worker": ["a", "z"]}


def test_both_roles_of_one_that_spans_nodes_are_given_them():
    spanning = engine(["--tensor-parallel-size", "2"])
    spanning["podTemplate"]["spec"]["containers"][0]["image"] = IMAGE
    assert pulls(graph_of(spanning)) == {"worker-ldr": ["ngc"], "worker-wkr": ["ngc"]}


@pytest.mark.parametrize("where", ["containers", "initContainers"])
def test_every_container_counts(where):
    body = worker("nginx:1.0.0")
    beside = {"name": "beside", "image": IMAGE}
    body["podTemplate"]["spec"].setdefault(where, []).append(beside)
    assert pulls(graph_of(body)) == {"worker": ["ngc"]}


def test_the_users_own_come_first_and_are_not_repeated():
    body = worker()
    body["podTemplate"]["spec"]["imagePullSecrets"] = [{"name": "own"}, {"name": "ngc"}]
    found = graph_of(body, secrets={"ngc": NGC, "also": NGC})
    assert pulls(found) == {"worker": ["own", "ngc", "also"]}
    assert not planned(done(found)).intents


def test_a_component_may_decline():
    body = worker()
    annotations = {"nvidia.com/disable-image-pull-secret-discovery": "true"}
    body["podTemplate"]["metadata"] = {"annotations": annotations}
    assert pulls(graph_of(body, component("Web", "frontend", main={"image": IMAGE}))) == {
        "worker": [],
        "web": ["ngc"],
    }


def with_secrets(found, *names: str, started: tuple[str, ...] = ()):
    secrets = dict.fromkeys(names, NGC)
    return replace(found, pull_secrets=secrets, started=frozenset(started))


WEB = component("Web", "frontend", main={"image": IMAGE})


def test_one_that_comes_late_is_for_components_that_have_not_started():
    before = done(graph_of(WEB, worker()))
    later = with_secrets(before, "late", "ngc", started=("Web",))
    assert pulls(later) == {"web": ["ngc"], "worker": ["late", "ngc"]}
    assert not planned(with_secrets(done(later), "late", "ngc", started=("Web", "Worker"))).intents


def test_while_nobody_knows_a_component_keeps_what_it_was_given():
    before = done(graph_of(WEB, worker()))
    after = snapshot(deployment(WEB, worker(f"{IMAGE}0"))).stored
    assert pulls(replace(before, stored=after, pull_secrets=None)) == {"web": ["ngc"], "worker": ["ngc"]}
    assert pulls(snapshot(deployment(worker()), pull_secrets=None)) == {"worker": []}


def test_it_is_for_those_that_change_anyway():
    before = done(graph_of(WEB, worker()))
    after = snapshot(deployment(WEB, worker(f"{IMAGE}0"))).stored
    changed = with_secrets(replace(before, stored=after), "late", started=("Web", "Worker"))
    assert pulls(changed) == {"web": ["ngc"], "worker": ["late"]}, "one that is gone is left out, too"
    assert not planned(with_secrets(done(changed), "late", started=("Web", "Worker"))).intents


@pytest.mark.parametrize("started", [(), ("Web", "Worker")])
def test_one_that_goes_changes_nothing(started):
    before = done(graph_of(WEB, worker()))
    assert not planned(with_secrets(before, started=started)).intents


def test_a_set_from_before_workers_had_generations_is_not_given_them_by_a_secret(monkeypatch):
    with monkeypatch.context() as before:
        before.setattr("grove.dynamo.render.containers.generation", lambda _: "")
        before.setattr("grove.dynamo.render.pod_template.generation", lambda _: "")
        made = done(graph_of(WEB, worker()))
    later = with_secrets(made, "late", "ngc", started=("Worker",))
    (patch,) = planned(later).intents
    assert pulls(later) == {"web": ["late", "ngc"], "worker": ["ngc"]}
    assert "nvidia.com/dynamo-worker-hash" not in str(patch.body)
    assert not planned(with_secrets(done(later), "late", "ngc", started=("Worker",))).intents


def carried(found, name: str = "app-worker"):
    """What a Deployment is changed to; None if it is not."""
    for intent in plan_graph(found, without_grove.BACKENDS, 0.0).intents:
        if isinstance(intent, Patch) and intent.target.name == name:
            spec = intent.body[0]["value"]["template"]["spec"]
            return [each["name"] for each in spec.get("imagePullSecrets", ())]
    return None


def deployed(found, name: str = "app-worker", **status):
    """As if its Deployment had been made."""
    body = {**without_grove.made(found)[name], "status": status}
    return replace(found, children={("Deployment", name): msgspec.convert(body, ChildObject)})


@pytest.mark.parametrize(
    ("ready", "updated", "late"), [(0, 2, ["late", "ngc"]), (1, 2, None), (1, 1, ["late", "ngc"])]
)
def test_without_grove_it_is_for_those_of_which_nothing_is_ready_or_not_all_is_updated(ready, updated, late):
    found = without_grove.snapshot(without_grove.packed(worker()), pull_secrets={"ngc": NGC})
    assert without_grove.made(found)["app-worker"]["spec"]["template"]["spec"]["imagePullSecrets"] == [
        {"name": "ngc"}
    ]
    there = deployed(found, readyReplicas=ready, updatedReplicas=updated, replicas=2)
    assert carried(there) is None
    assert carried(with_secrets(there, "late", "ngc")) == late
    assert carried(with_secrets(there)) is None
    changed = without_grove.snapshot(without_grove.packed(worker(f"{IMAGE}0"))).stored
    assert carried(replace(there, stored=changed, pull_secrets=None)) == ["ngc"], "nobody knows"
    assert carried(with_secrets(replace(there, stored=changed), "late", "ngc")) == ["late", "ngc"]


def test_without_grove_one_that_spans_nodes_keeps_what_it_was_given():
    spanning = engine(["--tensor-parallel-size", "2"])
    spanning["podTemplate"]["spec"]["containers"][0]["image"] = IMAGE
    found = without_grove.snapshot(without_grove.packed(spanning), pull_secrets={"ngc": NGC})
    (body,) = without_grove.made(found).values()
    for role in ("leaderTemplate", "workerTemplate"):
        assert body["spec"]["leaderWorkerTemplate"][role]["spec"]["imagePullSecrets"] == [{"name": "ngc"}]
    children = {("LeaderWorkerSet", "app-worker-0"): msgspec.convert(body, ChildObject)}
    there = replace(found, children=children)
    wakes = plan_graph(with_secrets(there), without_grove.BACKENDS, 0.0).intents
    assert not [each for each in wakes if each.target.kind == "LeaderWorkerSet"]
