"""Backends of other projects, found by entry point; scheduler objects in the caches."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from grove.api.configuration.loading import ConfigurationError
from grove.api.configuration.types import Scheduler, SchedulerProfile
from grove.api.meta import ObjectMeta, OwnerReference
from grove.api.naming import labels
from grove.kube.cache.cache import Cache
from grove.operator.caches.registry import Caches, InspectedCRD
from grove.operator.engine.key_state import KeyStates
from grove.operator.keys import Key, ReplicaKey, TopologyKey
from grove.operator.observers.schedulers import SchedulerLookup, load_backends
from grove.operator.watches.table import register
from grove.operator.watches.topologies import topology_watches
from grove.operator.watches.workloads import workload_watches
from grove.schedulers.backend import ObjectCondition, ObjectStatus, SchedulerObject
from grove.schedulers.kai import POD_GROUP, Kai
from grove.schedulers.kai_topology import TOPOLOGY
from grove.schedulers.kube import with_gang_scheduling
from grove.schedulers.registry import SchedulerBackends
from grove.schedulers.volcano import Volcano
from tests.plan.builders import a_clique, a_set, read_set
from tests.schedulers.builders import cluster_topology

REPLICA = ReplicaKey("ns", "wl", 0)
KAI = Kai()
IN_USE = SchedulerBackends({"kai-scheduler": KAI}, "kai-scheduler")


@pytest.fixture
def other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another project, installed beside ours, with a backend."""
    dist_info = tmp_path / "other-1.dist-info"
    dist_info.mkdir()
    (dist_info / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1\n")
    (dist_info / "entry_points.txt").write_text(
        "[grove.schedulers]\nother = other_backend:make\nworse = other_backend:missing\n"
    )
    (tmp_path / "other_backend.py").write_text(
        "from grove.schedulers.lpx import Lpx\n\n\ndef make(config):\n    return Lpx()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)


def profiles(*names: str) -> Scheduler:
    return Scheduler(tuple(map(SchedulerProfile, names)))


def test_external_backend_is_loaded_if_listed(other: None):
    assert sorted(load_backends(profiles("other")).by_name) == ["default-scheduler", "other"]
    assert list(load_backends(profiles()).by_name) == ["default-scheduler"]
    (wrong,) = load_backends(profiles("worse")).of("worse").unschedulable_reasons(None)
    assert "AttributeError" in wrong
    with pytest.raises(ConfigurationError, match="no scheduler backend unknown"):
        load_backends(profiles("unknown"))


def test_backend_is_named_by_pods_or_default():
    schedulers = SchedulerLookup(Caches(), IN_USE)
    assert schedulers.of(read_set(a_set("a")), 0, {}, ()) is KAI
    named = a_set("a")
    named["spec"]["template"]["cliques"] = [a_clique("a:1", schedulerName="another")]
    assert schedulers.of(read_set(named), 0, {}, ()) is None
    assert SchedulerLookup(Caches(), None).of(read_set(a_set("a")), 0, {}, ()) is None


def a_group(version: str = "3", generation: int = 1, message: str = "", spec: Any = None) -> SchedulerObject:
    object_labels = {labels.MANAGED_BY: labels.OPERATOR, labels.PART_OF: "wl", labels.SET_REPLICA: "0"}
    meta = ObjectMeta("wl-0", "ns", "u", version, generation, labels=object_labels)
    status = ObjectStatus((ObjectCondition("PodGroupScheduled", "False", message),)) if message else None
    return SchedulerObject(meta, spec or {}, status)


def test_scheduler_objects_are_none_until_synced_or_absent():
    caches = Caches(IN_USE.gang_object_kinds)
    schedulers = SchedulerLookup(caches, IN_USE)
    assert schedulers.objects(REPLICA, KAI) is None
    caches.scheduler_objects[POD_GROUP].clear()  # not served
    assert schedulers.objects(REPLICA, KAI) == {}
    caches.scheduler_objects[POD_GROUP].replace([found := a_group()], "5")
    assert schedulers.objects(REPLICA, KAI) == {"wl-0": found}
    assert schedulers.objects(REPLICA._replace(replica=1), KAI) == {}


def enqueued_keys(caches: Caches) -> set[Key]:
    keys: set[Key] = set()
    register((*workload_watches(caches, KeyStates()), *topology_watches(caches)), keys.add)
    keys.clear()
    return keys


def test_scheduler_object_change_enqueues_replica():
    caches = Caches(IN_USE.gang_object_kinds)
    caches.sets.apply_event("ADDED", read_set(a_set("a:1")))
    cache, keys = caches.scheduler_objects[POD_GROUP], enqueued_keys(caches)
    for change in (
        cache.clear,
        lambda: cache.replace([], "2"),
        lambda: cache.apply_event("ADDED", a_group()),
        lambda: cache.apply_event("MODIFIED", a_group("4", spec={"minMember": 2})),
        lambda: cache.apply_event("DELETED", a_group("5", spec={"minMember": 2})),
    ):
        keys.clear()
        change()
        assert REPLICA in keys
    keys.clear()
    cache.replace([], "6")  # the same once more
    assert keys == set()


async def test_scheduler_status_change_enqueues_with_backoff():
    """The generation of some kinds counts changes of the status, too."""
    caches, times = Caches(IN_USE.gang_object_kinds), set()
    cache, began = caches.scheduler_objects[POD_GROUP], asyncio.get_running_loop().time()
    cache.apply_event("ADDED", a_group())
    register(workload_watches(caches, KeyStates()), lambda key, at=0.0: times.add(at))
    times.clear()
    for version in range(4, 30):
        cache.apply_event("MODIFIED", a_group(str(version), generation=version, message=f"{version} nodes"))
    assert min(times) >= began + 2, "delayed: most gangs are scheduled by then"
    assert max(times) - min(times) < 0.1, "all messages of the delay are handled together"


def scheduler_topology(name: str, owner: str = "", version: str = "3") -> SchedulerObject:
    owners, object_labels = (), {}
    if owner:
        owners = (OwnerReference("grove.io/v1alpha1", "ClusterTopology", owner, "u-1", controller=True),)
        object_labels = {labels.MANAGED_BY: labels.OPERATOR}
    return SchedulerObject(
        ObjectMeta(name, uid="k", resource_version=version, labels=object_labels, owner_references=owners)
    )


def test_scheduler_topology_change_enqueues_topology():
    caches = Caches((), (TOPOLOGY,))
    keys = enqueued_keys(caches)
    caches.topologies.apply_event("ADDED", cluster_topology("zone", name="racks"))
    assert keys == {TopologyKey("racks")}
    steps = [
        (scheduler_topology("racks"), {TopologyKey("racks")}),
        (scheduler_topology("unrelated"), set()),
        (scheduler_topology("left", owner="gone"), {TopologyKey("gone")}),
    ]
    for found, enqueued in steps:
        keys.clear()
        caches.scheduler_topologies[TOPOLOGY].apply_event("ADDED", found)
        assert keys == enqueued
    keys.clear()
    caches.scheduler_topologies[TOPOLOGY].clear()
    assert TopologyKey("racks") in keys, "its kind is gone"


def a_definition(version: str = "7", *, capable: bool = True) -> InspectedCRD:
    spec = {"properties": {"spec": {"properties": {"subGroupPolicy": {}} if capable else {}}}}
    served = {"name": "v1beta1", "served": True, "schema": {"openAPIV3Schema": spec}}
    meta = ObjectMeta("podgroups.scheduling.volcano.sh", uid="d", resource_version=version)
    return InspectedCRD(meta, msgspec.Raw(msgspec.json.encode({"versions": [served]})))


def test_compatible_volcano_crd_enqueues_replicas():
    volcano = Volcano()
    in_use = SchedulerBackends({"volcano": volcano}, "volcano")
    caches = Caches(in_use.gang_object_kinds, versioned_kinds=in_use.versioned_kinds)
    caches.sets.apply_event("ADDED", read_set(a_set("a:1")))
    schedulers, (cache,), keys = (
        SchedulerLookup(caches, in_use),
        caches.inspected_crds.values(),
        enqueued_keys(caches),
    )
    assert schedulers.kind_problem(volcano) == "", "not checked yet"
    cache.replace([], "5")
    assert "install Volcano 1.14" in schedulers.kind_problem(volcano)
    cache.apply_event("ADDED", a_definition(capable=False))
    assert "not in the installed CRD" in schedulers.kind_problem(volcano)
    keys.clear()
    cache.apply_event("MODIFIED", a_definition("8"))
    assert REPLICA in keys
    assert schedulers.kind_problem(volcano) == ""
    assert schedulers.kind_problem(KAI) == schedulers.kind_problem(None) == ""
    assert IN_USE.versioned_kinds == ()


def test_backend_exception_is_reported_as_incompatibility():
    confused = type("Confused", (Volcano,), {"crd_problem": lambda *_: 1 / 0})()
    in_use = SchedulerBackends({"volcano": confused}, "volcano")
    caches = Caches(in_use.gang_object_kinds, versioned_kinds=in_use.versioned_kinds)
    next(iter(caches.inspected_crds.values())).replace([], "5")
    problem = SchedulerLookup(caches, in_use).kind_problem(confused)
    assert "could not be checked: ZeroDivisionError" in problem


NATIVE = with_gang_scheduling()
(OLDER,) = NATIVE.older_versions
NATIVE_IN_USE = SchedulerBackends({"default-scheduler": NATIVE}, "default-scheduler")


def native_caches() -> tuple[Caches, Cache[SchedulerObject], Cache[SchedulerObject]]:
    """All caches, and those of PodGroups v1beta1 and v1alpha2."""
    caches = Caches(NATIVE_IN_USE.gang_object_kinds)
    latest, older = caches.scheduler_objects.values()
    return caches, latest, older


def test_backend_follows_served_version_of_its_kind():
    caches, latest, older = native_caches()
    caches.sets.apply_event("ADDED", read_set(a_set("a:1")))
    schedulers, workload = SchedulerLookup(caches, NATIVE_IN_USE), read_set(a_set("a"))
    keys = enqueued_keys(caches)
    assert schedulers.of(workload, 0, {}, ()) is NATIVE
    assert (schedulers.objects(REPLICA, NATIVE), schedulers.kind_problem(NATIVE)) == (None, "")
    older.replace([found := a_group()], "5")
    latest.clear()
    assert schedulers.of(workload, 0, {}, ()) is OLDER
    assert (schedulers.objects(REPLICA, OLDER), schedulers.kind_problem(OLDER)) == ({"wl-0": found}, "")
    keys.clear()
    older.clear()
    latest.replace([], "9")
    assert REPLICA in keys
    assert schedulers.of(workload, 0, {}, ()) is NATIVE
    assert (schedulers.objects(REPLICA, NATIVE), schedulers.kind_problem(NATIVE)) == ({}, "")


def test_unserved_and_unlistable_kinds_are_problems():
    caches, latest, older = native_caches()
    caches.sets.apply_event("ADDED", read_set(a_set("a:1")))
    schedulers, workload, keys = (
        SchedulerLookup(caches, NATIVE_IN_USE),
        read_set(a_set("a")),
        enqueued_keys(caches),
    )
    latest.clear()
    older.clear()
    backend = schedulers.of(workload, 0, {}, ())
    assert schedulers.objects(REPLICA, backend) == {}
    assert "GenericWorkload=true" in schedulers.kind_problem(backend)
    keys.clear()
    latest.mark_unlistable('no kind "PodGroup" is registered')
    assert REPLICA in keys
    assert schedulers.of(workload, 0, {}, ()) is NATIVE
    assert schedulers.objects(REPLICA, NATIVE) is None
    assert "docs/kubernetes-upgrade.md" in schedulers.kind_problem(NATIVE)
    latest.replace([], "9")
    assert schedulers.kind_problem(NATIVE) == ""
    latest.clear()
    older.mark_unlistable("etcd is not available")
    assert schedulers.of(workload, 0, {}, ()) is OLDER, "it is served, so flags are not the problem"


def test_failure_to_name_kind_problem_is_reported():
    confused = type("Confused", (Kai,), {"kind_problem": lambda *_: 1 / 0})()
    caches = Caches(IN_USE.gang_object_kinds)
    caches.scheduler_objects[POD_GROUP].clear()
    problem = SchedulerLookup(caches, IN_USE).kind_problem(confused)
    assert problem == "scheduler backend kai-scheduler failed: ZeroDivisionError: division by zero"
