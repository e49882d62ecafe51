"""On which nodes the volumes of claims can be used."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from grove.api.types.cluster.volume_objects import StorageClass, Volume, VolumeClaim
from grove.operator.caches.volumes import Volumes
from grove.plan.placement.needs import KnownVolume
from grove.topology.placement.model import Requirement, Term

ZONE = (Term((Requirement("zone", "In", ("z1",)),)),)


def meta(name: str, namespace: str = "", **annotations: str) -> dict[str, Any]:
    return {"name": name, "namespace": namespace, "resourceVersion": "1", "annotations": annotations}


def storage_class(name: str, mode: str = "WaitForFirstConsumer", **annotations: str) -> StorageClass:
    allowed = [{"matchLabelExpressions": [{"key": "zone", "values": ["z1"]}]}]
    body = {"metadata": meta(name, **annotations), "volumeBindingMode": mode, "allowedTopologies": allowed}
    return msgspec.convert(body, StorageClass)


def volumes(**claim: Any) -> Volumes:
    """A claim in the namespace `ns`, a volume in a zone, and three classes."""
    found = Volumes()
    found.claims.replace([msgspec.convert({"metadata": meta("data", "ns"), **claim}, VolumeClaim)], "1")
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z1"]}]}
    affinity = {"nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}}
    listed = [{"metadata": meta("local"), "spec": affinity}, {"metadata": meta("network"), "spec": {}}]
    found.volumes.replace([msgspec.convert(each, Volume) for each in listed], "1")
    is_default = {"storageclass.kubernetes.io/is-default-class": "true"}
    classes = [storage_class("late"), storage_class("early", "Immediate")]
    found.classes.replace([*classes, storage_class("default", **is_default)], "1")
    return found


BOUND = {"phase": "Bound"}


@pytest.mark.parametrize(
    ("spec", "status", "known"),
    [
        ({"volumeName": "local"}, BOUND, KnownVolume(True, ZONE)),
        ({"volumeName": "network"}, BOUND, KnownVolume(True)),
        ({"volumeName": "unseen", "storageClassName": "early"}, BOUND, KnownVolume(False)),
        ({"volumeName": "local", "storageClassName": "early"}, {"phase": "Pending"}, KnownVolume(False)),
        ({"storageClassName": "late"}, {}, KnownVolume(False, ZONE)),
        ({"storageClassName": "early"}, {}, KnownVolume(False)),
        ({"storageClassName": "missing"}, {}, KnownVolume(False)),
        ({}, {}, KnownVolume(False, ZONE)),
    ],
)
def test_nodes_of_a_claim(spec: Any, status: Any, known: KnownVolume) -> None:
    found = volumes(spec=spec, status=status)
    assert found.known("ns", "data") == known
    assert found.known("other", "data") is None
