"""KAI's Topology: created, recreated, left unchanged or compared."""

from __future__ import annotations

import pytest

from grove.api.intents import Create, Delete
from grove.api.meta import ObjectMeta, OwnerReference
from grove.schedulers.backend import SchedulerObject
from grove.schedulers.kai import Kai
from grove.schedulers.kai_topology import refused
from tests.schedulers.builders import cluster_topology

KAI = Kai()
OURS = cluster_topology("zone", "rack")


def found(*labels: str, owner: str = "u-1", controller: bool = True, generation: int = 4) -> SchedulerObject:
    owners = ()
    if owner:
        owners = (OwnerReference("grove.io/v1alpha1", "ClusterTopology", "racks", owner, controller),)
    meta = ObjectMeta(name="racks", uid="k-1", generation=generation, owner_references=owners)
    return SchedulerObject(meta, {"levels": [{"nodeLabel": label} for label in labels]})


BODY = {
    "apiVersion": "kai.scheduler/v1alpha1",
    "kind": "Topology",
    "metadata": {
        "name": "racks",
        "labels": {"app.kubernetes.io/managed-by": "grove-operator"},
        "ownerReferences": [
            {
                "apiVersion": "grove.io/v1alpha1",
                "kind": "ClusterTopology",
                "name": "racks",
                "uid": "u-1",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    },
    "spec": {"levels": [{"nodeLabel": "zone"}, {"nodeLabel": "rack"}]},
}


def test_missing_topology_is_created_with_owner():
    sync = KAI.sync_topology(OURS, None)
    (create,) = sync.intents
    assert isinstance(create, Create)
    assert create.body == BODY
    assert (sync.in_sync, sync.observed) == (False, 0)


def test_topology_with_same_levels_is_in_sync():
    sync = KAI.sync_topology(OURS, found("zone", "rack"))
    assert (sync.in_sync, sync.message, sync.observed, sync.intents) == (True, "", 4, ())


@pytest.mark.parametrize("labels", [("rack", "zone"), ("zone",), ("zone", "rack", "host"), ()])
def test_changed_levels_recreate_after_dry_run(labels):
    sync = KAI.sync_topology(OURS, found(*labels))
    trial, delete, create = sync.intents
    assert isinstance(trial, Create)
    assert trial.dry_run
    assert trial.body["spec"] == BODY["spec"]
    assert trial.target.name == "racks-trial" == trial.body["metadata"]["name"]
    assert isinstance(delete, Delete)
    assert (delete.target.name, delete.uid, delete.after) == ("racks", "k-1", (trial.id,))
    assert isinstance(create, Create)
    assert (create.body, create.dry_run, create.after) == (BODY, False, (delete.id,))
    assert not sync.in_sync
    assert "is recreated" in sync.message


@pytest.mark.parametrize(
    "foreign", [found("zone", owner=""), found("zone", owner="u-2"), found("zone", controller=False)]
)
def test_topology_of_other_owner_is_left_unchanged(foreign):
    sync = KAI.sync_topology(OURS, foreign)
    assert (sync.in_sync, sync.intents) == (False, ())
    assert "not owned by this ClusterTopology" in sync.message


DIFFER = "KAI Topology levels differ from ClusterTopology levels"
DRIFTS = [
    (None, False, 'KAI Topology "referenced" not found', 0),
    (found("zone", "rack", owner=""), True, "", 4),
    (found("rack", "zone", owner=""), False, f"{DIFFER}: expected [zone, rack], found [rack, zone]", 4),
    (found("zone", owner=""), False, f"{DIFFER}: expected [zone, rack], found [zone]", 4),
]


@pytest.mark.parametrize(("foreign", "in_sync", "message", "observed"), DRIFTS)
def test_referenced_topology_is_compared_and_never_written(foreign, in_sync, message, observed):
    sync = KAI.check_topology_drift(OURS, "referenced", foreign)
    assert (sync.in_sync, sync.message, sync.observed, sync.intents) == (in_sync, message, observed, ())


def test_deleted_topology_deletes_managed_object():
    (delete,) = KAI.on_topology_delete("racks", found("zone"))
    assert isinstance(delete, Delete)
    assert (delete.target.kind, delete.target.name, delete.uid) == ("Topology", "racks", "k-1")


def test_levels_that_kai_rejects_are_reported():
    host = "kubernetes.io/hostname"
    assert list(refused(("zone", "rack", host))) == []
    assert list(refused((host, "rack"))) == [f"KAI requires {host} to be the last level"]
    assert list(refused(("Example.com/zone",))) == [
        "KAI requires the prefix of Example.com/zone in lower case"
    ]
    assert list(refused(tuple(f"k{n}" for n in range(17)))) == ["KAI requires 1 to 16 levels, not 17"]
