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
    body = {"metadata": meta("data", "ns"), **claim}
    listed_claim = found.claims.compact(msgspec.convert(body, VolumeClaim))
    found.claims.replace([listed_claim], "1")
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z1"]}]}
    affinity = {"nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}}
    listed = [{"metadata": meta("local"), "spec": affinity}, {"metadata": meta("network"), "spec": {}}]
    found.volumes.replace([msgspec.convert(each, Volume) for each in listed], "1")
    is_default = {"storageclass.kubernetes.io/is-default-class": "true"}
    classes = [storage_class("late"), storage_class("early", "Immediate")]
    found.classes.replace([*classes, storage_class("default", **is_default)], "1")
    return found


BOUND = {"phase": "Bound"}
BOUND_FIRST = KnownVolume(False, bound_first=True)


@pytest.mark.parametrize(
    ("spec", "status", "known"),
    [
        ({"volumeName": "local"}, BOUND, KnownVolume(True, ZONE)),
        ({"volumeName": "network"}, BOUND, KnownVolume(True)),
        ({"volumeName": "unseen", "storageClassName": "early"}, BOUND, BOUND_FIRST),
        ({"volumeName": "local", "storageClassName": "early"}, {"phase": "Pending"}, BOUND_FIRST),
        ({"volumeName": "local", "storageClassName": "late"}, {"phase": "Pending"}, BOUND_FIRST),
        ({"storageClassName": "late"}, {}, KnownVolume(False, ZONE)),
        ({"storageClassName": "early"}, {}, BOUND_FIRST),
        ({"storageClassName": "missing"}, {}, BOUND_FIRST),
        ({"storageClassName": ""}, {}, BOUND_FIRST),
        ({}, {}, KnownVolume(False, ZONE)),
    ],
)
def test_nodes_of_a_claim(spec: Any, status: Any, known: KnownVolume) -> None:
    found = volumes(spec=spec, status=status)
    assert found.known("ns", "data") == known
    assert found.known("other", "data") is None


def test_claim_may_name_its_class_in_an_annotation() -> None:
    """As the scheduler reads it. A gang must not wait for a volume that waits for the gang."""
    named = meta("data", "ns", **{"volume.beta.kubernetes.io/storage-class": "late"})
    assert volumes(metadata=named).known("ns", "data") == KnownVolume(False, ZONE)


def test_claim_without_any_class_is_bound_first() -> None:
    found = volumes(spec={})
    found.classes.replace([storage_class("late")], "2")
    assert found.known("ns", "data") == BOUND_FIRST
