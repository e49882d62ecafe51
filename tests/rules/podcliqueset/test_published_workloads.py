"""Published manifests are accepted unchanged: upstream's workloads, Dynamo's, and those of the guides."""

from __future__ import annotations

import pytest
import yaml

from grove.api.configuration.types import OnUnsupported
from grove.rules import cluster_topology
from grove.rules.model import Facts
from grove.rules.podcliqueset import validation
from grove.rules.podcliqueset.defaults import default_set
from tests.rules.builders import in_use
from tests.shared import ROOT, SHARED, shared_data

LEVELS = ("zone", "block", "rack", "host")
FACTS = Facts(
    backends=in_use("default-scheduler", "kai-scheduler", unsupported_constraints=OnUnsupported.WARN),
    topology_aware=True,
    topologies={"grove-topology": LEVELS, "h100-topology": LEVELS, "h100": ("zone", "rack", "host")},
)
FOLDERS = ("workloads", "dynamo/expected")


def manifests():
    """The names of all manifests. Without the shared data one name stands for each folder, and is skipped."""
    for folder in FOLDERS:
        found = sorted(path.name for path in (SHARED / "testdata" / folder).glob("*.yaml"))
        yield from (f"{folder}/{name}" for name in found or ["any.yaml"])
    yield from sorted(path.name for path in (ROOT / "tests/manifests").glob("*.yaml"))


def documents(name):
    path = shared_data(name) if "/" in name else ROOT / "tests/manifests" / name
    with path.open() as file:
        return [each for each in yaml.safe_load_all(file) if each]


@pytest.mark.parametrize("name", list(manifests()))
def test_published_manifest_is_accepted(name):
    found = documents(name)
    assert found
    for body in found:
        kind = body.get("kind", "PodCliqueSet")
        if kind == "PodCliqueSet":
            done = default_set(body)
            assert validation.on_create(done, FACTS).message == ""
            assert validation.on_update(done, default_set(body, done), FACTS).message == ""
        elif kind.startswith("ClusterTopology"):
            assert cluster_topology.on_create(body, FACTS).message == ""
