"""Image pull Secrets: which match, what is cached of them, and when a component gets one."""

from __future__ import annotations

import base64

import msgspec
import pytest
from msgspec.structs import replace

from grove.api.intents import Patch
from grove.dynamo.api.pull_secret import PullSecret, matches_registry, registry_of
from grove.dynamo.reconcile.planner import plan_graph
from grove.dynamo.snapshot import ChildObject
from grove.operator.caches.dynamo import GraphCaches
from tests.dynamo.backends import test_lws as without_grove
from tests.dynamo.builders import component, deployment, engine, with_stored
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
def test_registry_of_image(image, registry):
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
def test_secret_entry_matches_registry(entry, registry, same):
    assert matches_registry(entry, registry) is same


def test_only_registries_of_secret_are_cached():
    config = b"""{"auths": {"https://index.docker.io/v1/": {"auth": "dXM6c2VjcmV0"}, "nvcr.io": {},
        "my-registry.com:5005/team": {"password": "hidden"}}}"""
    found = stored(config, annotations={"kubectl.kubernetes.io/last-applied-configuration": "hidden"})
    assert found.registries == {"docker.io", "nvcr.io", "my-registry.com:5005"}
    assert (found.metadata.namespace, found.metadata.name) == ("ns", "ngc")
    assert (found.metadata.uid, found.metadata.resource_version) == ("u", "7")
    kept = repr(found)
    assert not any(secret in kept for secret in ("hidden", "dXM6", "password", "annotations={'"))


@pytest.mark.parametrize("config", [b"", b"{", b"[]", b"\xff", b"{}", b'{"auths": null}', b'{"auths": []}'])
def test_undecodable_secret_has_no_registries(config):
    assert stored(config).registries == frozenset()


def test_secret_without_data_has_no_registries():
    assert msgspec.convert({"metadata": {"name": "n"}, "data": None}, PullSecret).registries == frozenset()


def pulls(found) -> dict[str, list[str]]:
    """The image pull Secrets of the desired cliques, by name."""
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


def test_matching_secrets_are_sorted_and_unique():
    secrets = {"z": NGC, "a": NGC | {"docker.io"}, "other": frozenset({"quay.io"}), "none": frozenset()}
    assert pulls(graph_of(worker(), secrets=secrets)) == {"worker": ["a", "z"]}


def test_leader_and_workers_get_secrets():
    spanning = engine(["--tensor-parallel-size", "2"])
    spanning["podTemplate"]["spec"]["containers"][0]["image"] = IMAGE
    assert pulls(graph_of(spanning)) == {"worker-ldr": ["ngc"], "worker-wkr": ["ngc"]}


@pytest.mark.parametrize("where", ["containers", "initContainers"])
def test_images_of_all_containers_count(where):
    body = worker("nginx:1.0.0")
    beside = {"name": "beside", "image": IMAGE}
    body["podTemplate"]["spec"].setdefault(where, []).append(beside)
    assert pulls(graph_of(body)) == {"worker": ["ngc"]}


def test_secrets_of_user_come_first_without_duplicates():
    body = worker()
    body["podTemplate"]["spec"]["imagePullSecrets"] = [{"name": "own"}, {"name": "ngc"}]
    found = graph_of(body, secrets={"ngc": NGC, "also": NGC})
    assert pulls(found) == {"worker": ["own", "ngc", "also"]}
    assert not planned(done(found)).intents


def test_component_may_disable_discovery():
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


def test_late_secret_is_added_if_component_not_started():
    before = done(graph_of(WEB, worker()))
    later = with_secrets(before, "late", "ngc", started=("Web",))
    assert pulls(later) == {"web": ["ngc"], "worker": ["late", "ngc"]}
    assert not planned(with_secrets(done(later), "late", "ngc", started=("Web", "Worker"))).intents


def test_unknown_secrets_keep_current_ones():
    before = done(graph_of(WEB, worker()))
    after = snapshot(deployment(WEB, worker(f"{IMAGE}0"))).stored
    assert pulls(replace(with_stored(before, after), pull_secrets=None)) == {
        "web": ["ngc"],
        "worker": ["ngc"],
    }
    assert pulls(snapshot(deployment(worker()), pull_secrets=None)) == {"worker": []}


def test_operator_without_discovery_takes_no_secret_away():
    """As after an upgrade: the cache of an operator without discovery does not know any Secrets."""
    unknown = GraphCaches().registries("ns")
    before = done(graph_of(WEB, worker()))
    assert not planned(replace(before, pull_secrets=unknown)).intents
    annotations = {"nvidia.com/disable-image-pull-secret-discovery": "true"}
    without = worker()
    without["podTemplate"]["metadata"] = {"annotations": annotations}
    after = replace(with_stored(before, snapshot(deployment(WEB, without)).stored), pull_secrets=unknown)
    assert pulls(after) == {"web": ["ngc"], "worker": []}, "unless the component asks for it"


def test_late_secret_is_added_if_template_changes():
    before = done(graph_of(WEB, worker()))
    after = snapshot(deployment(WEB, worker(f"{IMAGE}0"))).stored
    changed = with_secrets(with_stored(before, after), "late", started=("Web", "Worker"))
    assert pulls(changed) == {"web": ["ngc"], "worker": ["late"]}, "a deleted Secret is removed, too"
    assert not planned(with_secrets(done(changed), "late", started=("Web", "Worker"))).intents


@pytest.mark.parametrize("started", [(), ("Web", "Worker")])
def test_deleted_secret_changes_nothing(started):
    before = done(graph_of(WEB, worker()))
    assert not planned(with_secrets(before, started=started)).intents


def test_secret_adds_no_generation_to_old_set(monkeypatch):
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
    """The Secrets that a Deployment is patched to; None if it is not patched."""
    for intent in plan_graph(found, without_grove.BACKENDS, 0.0).intents:
        if isinstance(intent, Patch) and intent.target.name == name:
            spec = intent.body[0]["value"]["template"]["spec"]
            return [each["name"] for each in spec.get("imagePullSecrets", ())]
    return None


def deployed(found, name: str = "app-worker", **status):
    """The snapshot with the created Deployment."""
    body = {**without_grove.workloads(found)[name], "status": status}
    return replace(found, children={("Deployment", name): msgspec.convert(body, ChildObject)})


@pytest.mark.parametrize(
    ("ready", "updated", "late"), [(0, 2, ["late", "ngc"]), (1, 2, None), (1, 1, ["late", "ngc"])]
)
def test_without_grove_late_secret_is_added_if_not_started(ready, updated, late):
    found = without_grove.snapshot(without_grove.packed(worker()), pull_secrets={"ngc": NGC})
    assert without_grove.workloads(found)["app-worker"]["spec"]["template"]["spec"]["imagePullSecrets"] == [
        {"name": "ngc"}
    ]
    there = deployed(found, readyReplicas=ready, updatedReplicas=updated, replicas=2)
    assert carried(there) is None
    assert carried(with_secrets(there, "late", "ngc")) == late
    assert carried(with_secrets(there)) is None
    changed = without_grove.snapshot(without_grove.packed(worker(f"{IMAGE}0"))).stored
    assert carried(replace(with_stored(there, changed), pull_secrets=None)) == ["ngc"], (
        "the Secrets are not known"
    )
    assert carried(with_secrets(with_stored(there, changed), "late", "ngc")) == ["late", "ngc"]


def test_without_grove_multinode_keeps_current_secrets():
    spanning = engine(["--tensor-parallel-size", "2"])
    spanning["podTemplate"]["spec"]["containers"][0]["image"] = IMAGE
    found = without_grove.snapshot(without_grove.packed(spanning), pull_secrets={"ngc": NGC})
    (body,) = without_grove.workloads(found).values()
    for role in ("leaderTemplate", "workerTemplate"):
        assert body["spec"]["leaderWorkerTemplate"][role]["spec"]["imagePullSecrets"] == [{"name": "ngc"}]
    children = {("LeaderWorkerSet", "app-worker-0"): msgspec.convert(body, ChildObject)}
    there = replace(found, children=children)
    intents = plan_graph(with_secrets(there), without_grove.BACKENDS, 0.0).intents
    assert not [each for each in intents if each.target.kind == "LeaderWorkerSet"]
