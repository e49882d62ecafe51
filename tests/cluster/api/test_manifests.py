"""Real manifests on the real API server: accepted, stored completely, and defaulted only as declared."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
import yaml

from grove.api.types.podclique import PodClique
from grove.api.types.podcliqueset import PodCliqueSet
from tests.cluster.api.objects import RESOURCES, create, create_strictly, pod_clique, pod_clique_set
from tests.shared import ROOT, SHARED, shared_data

OWN = sorted((ROOT / "tests" / "manifests").glob("*.yaml"))
UPSTREAM = sorted((SHARED / "testdata").glob("workloads/*.yaml")) + sorted(
    (SHARED / "testdata").glob("dynamo/expected/*.yaml")
)


def documents(file: Path) -> list[dict]:
    """The objects in a file. Dynamo's renderer prints PodCliqueSets without a kind and with a status."""
    kind = {"apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueSet"}
    found = [{**kind, **each} for each in yaml.load_all(file.read_text(), Loader=yaml.CSafeLoader) if each]
    return [{word: value for word, value in each.items() if word != "status"} for each in found]


@pytest.mark.parametrize("file", [*OWN, *UPSTREAM], ids=lambda file: f"{file.parent.name}/{file.name}")
async def test_manifest_is_accepted_and_stored_completely(crds, client, namespace, file):
    for written in documents(file):
        if RESOURCES[written["kind"]].namespaced:
            written["metadata"]["namespace"] = namespace
        stored = await create_strictly(client, written, namespace)
        assert missing(written, stored, "") == []


def test_upstream_manifests_exist():
    """Without them the test above would have fewer cases and still pass."""
    assert list(shared_data("workloads").iterdir())
    assert list(shared_data("dynamo/expected").iterdir())


def missing(written, stored, path):
    """The path of a value that was sent and is not stored; the server may add fields."""
    if isinstance(written, dict):
        for key, value in written.items():
            if key not in stored:
                return [f"{path}.{key}"]
            if lost := missing(value, stored[key], f"{path}.{key}"):
                return lost
        return []
    if isinstance(written, list):
        if len(written) != len(stored):
            return [path]
        pairs = enumerate(zip(written, stored, strict=True))
        return next((lost for n, pair in pairs if (lost := missing(*pair, f"{path}[{n}]"))), [])
    return [] if written == stored else [path]


async def test_omitted_fields_are_defaulted(crds, client, namespace):
    created = await create(
        client, pod_clique_set(podCliqueScalingGroups=[{"name": "g", "cliqueNames": []}]), namespace
    )
    (clique,) = created["spec"]["template"]["cliques"]
    assert clique["spec"]["replicas"] == 1
    assert created["spec"]["template"]["cliqueStartupType"] == "CliqueStartupTypeAnyOrder"
    assert created["spec"]["template"]["podCliqueScalingGroups"] == [
        {"name": "g", "cliqueNames": [], "replicas": 1, "minAvailable": 1}
    ]
    assert "updateStrategy" not in created["spec"]


async def test_pod_template_gets_only_upstream_defaults(crds, client, namespace):
    """A default would change objects, and with them the hash that decides whether pods are replaced."""
    pod_spec = {
        "containers": [
            {"name": "a", "ports": [{"containerPort": 80}], "livenessProbe": {"grpc": {"port": 1}}}
        ],
        "volumes": [{"name": "disk", "azureDisk": {"diskName": "d", "diskURI": "u"}}],
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "k", "whenUnsatisfiable": "DoNotSchedule"}
        ],
    }
    created = await create(client, pod_clique(podSpec=pod_spec), namespace)
    defaulted = created["spec"]["podSpec"]
    assert defaulted == {
        "containers": [
            {
                "name": "a",
                "ports": [{"containerPort": 80, "protocol": "TCP"}],
                "livenessProbe": {"grpc": {"port": 1, "service": ""}},
            }
        ],
        "volumes": [
            {
                "name": "disk",
                "azureDisk": {"diskName": "d", "diskURI": "u", "fsType": "ext4", "readOnly": False},
            }
        ],
        "topologySpreadConstraints": pod_spec["topologySpreadConstraints"],
    }


async def test_unknown_pod_field_is_dropped_with_warning(crds, client, namespace):
    body = pod_clique(podSpec={"containers": [{"name": "a", "image": "i", "imagee": "typo"}]})
    path = RESOURCES["PodClique"].path(namespace)
    reply = await client.raw("POST", f"{path}?fieldValidation=Warn", msgspec.json.encode(body))
    assert "imagee" not in reply.body.decode()
    assert 'unknown field \\"spec.podSpec.containers[0].imagee\\"' in reply.headers["Warning"]


async def test_stored_objects_round_trip_through_our_types(crds, client, namespace):
    created = await create(client, pod_clique_set(), namespace)
    read = msgspec.json.decode(msgspec.json.encode(created), type=PodCliqueSet)
    (clique,) = read.spec.template.cliques
    spec = msgspec.structs.replace(clique.spec, min_available=1, starts_after=("inference-0-router",))
    body = PodClique(spec=spec)
    body = msgspec.structs.replace(
        body, metadata=msgspec.structs.replace(body.metadata, name="inference-0-worker")
    )
    stored = await client.create(RESOURCES["PodClique"], body, namespace=namespace, as_type=PodClique)
    assert stored.spec == spec
    assert stored.metadata.generation == 1
    written = await client.replace(
        RESOURCES["PodClique"], "inference-0-worker", stored, namespace=namespace, as_type=PodClique
    )
    assert written.metadata.generation == 1, "reading and writing back must change nothing"
