"""Backends of others, found by entry point; what schedulers were told, as far as it can be seen."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from grove.api import labels
from grove.api.config import Scheduler, SchedulerProfile
from grove.api.configfile import ConfigurationError
from grove.api.meta import ObjectMeta, OwnerReference
from grove.operator.caches import Caches, Definition
from grove.operator.keys import Key, ReplicaKey, TopologyKey
from grove.operator.schedulers import Schedulers, registered
from grove.operator.wakes import wire
from grove.schedulers.backend import Foreign, Opinion, Opinions
from grove.schedulers.kai import POD_GROUP, Kai
from grove.schedulers.kai_topology import TOPOLOGY
from grove.schedulers.registry import Backends
from grove.schedulers.volcano import Volcano
from tests.plan.builders import a_clique, a_set, read_set
from tests.schedulers.builders import cluster_topology

REPLICA = ReplicaKey("ns", "wl", 0)
KAI = Kai()
IN_USE = Backends({"kai-scheduler": KAI}, "kai-scheduler")


@pytest.fixture
def other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another project, installed beside ours, with a backend."""
    told = tmp_path / "other-1.dist-info"
    told.mkdir()
    (told / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1\n")
    (told / "entry_points.txt").write_text(
        "[grove.schedulers]\nother = other_backend:make\nworse = other_backend:missing\n"
    )
    (tmp_path / "other_backend.py").write_text(
        "from grove.schedulers.lpx import Lpx\n\n\ndef make(config):\n    return Lpx()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)


def profiles(*names: str) -> Scheduler:
    return Scheduler(tuple(map(SchedulerProfile, names)))


def test_another_projects_backend_is_found_if_it_is_listed(other: None):
    assert sorted(registered(profiles("other")).by_name) == ["default-scheduler", "other"]
    assert list(registered(profiles()).by_name) == ["default-scheduler"]
    (wrong,) = registered(profiles("worse")).of("worse").cannot(None)
    assert "AttributeError" in wrong
    with pytest.raises(ConfigurationError, match="no scheduler backend nobody"):
        registered(profiles("nobody"))


def test_a_set_has_the_backend_that_its_pods_name_or_the_default_one():
    schedulers = Schedulers(Caches(), IN_USE)
    assert schedulers.of(read_set(a_set("a")), 0, {}, ()) is KAI
    named = a_set("a")
    named["spec"]["template"]["cliques"] = [a_clique("a:1", schedulerName="another")]
    assert schedulers.of(read_set(named), 0, {}, ()) is None
    assert Schedulers(Caches(), None).of(read_set(a_set("a")), 0, {}, ()) is None


def a_group(version: str = "3", generation: int = 1, said: str = "", spec: Any = None) -> Foreign:
    carried = {labels.MANAGED_BY: labels.OPERATOR, labels.PART_OF: "wl", labels.SET_REPLICA: "0"}
    meta = ObjectMeta("wl-0", "ns", "u", version, generation, labels=carried)
    status = Opinions((Opinion("PodGroupScheduled", "False", said),)) if said else None
    return Foreign(meta, spec or {}, status)


def test_what_was_told_is_known_once_it_can_be_seen_or_cannot_be_there():
    caches = Caches(IN_USE.kept)
    schedulers = Schedulers(caches, IN_USE)
    assert schedulers.told(REPLICA, KAI) is None
    caches.told[POD_GROUP].clear()  # not served
    assert schedulers.told(REPLICA, KAI) == {}
    caches.told[POD_GROUP].replace([found := a_group()], "5")
    assert schedulers.told(REPLICA, KAI) == {"wl-0": found}
    assert schedulers.told(REPLICA._replace(replica=1), KAI) == {}


def listening(caches: Caches) -> set[Key]:
    keys: set[Key] = set()
    wire(caches, keys.add, topologies=True)
    keys.clear()
    return keys


def test_replicas_are_woken_by_changes_of_what_was_told_and_when_it_comes_into_sight():
    caches = Caches(IN_USE.kept)
    caches.sets.apply_event("ADDED", read_set(a_set("a:1")))
    cache, keys = caches.told[POD_GROUP], listening(caches)
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


async def test_a_scheduler_that_never_stops_talking_is_listened_to_less_and_less():
    """Of some kinds the generation counts changes of the status, too."""
    caches, moments = Caches(IN_USE.kept), set()
    cache, began = caches.told[POD_GROUP], asyncio.get_running_loop().time()
    cache.apply_event("ADDED", a_group())
    wire(caches, lambda key, at=0.0: moments.add(at))
    moments.clear()
    for version in range(4, 30):
        cache.apply_event("MODIFIED", a_group(str(version), generation=version, said=f"{version} nodes"))
    (moment,) = moments
    assert moment >= began + 2, "not at once: most gangs have their nodes by then"


def theirs(name: str, owner: str = "", version: str = "3") -> Foreign:
    owners, carried = (), {}
    if owner:
        owners = (OwnerReference("grove.io/v1alpha1", "ClusterTopology", owner, "u-1", controller=True),)
        carried = {labels.MANAGED_BY: labels.OPERATOR}
    return Foreign(
        ObjectMeta(name, uid="k", resource_version=version, labels=carried, owner_references=owners)
    )


def test_a_topology_is_woken_by_its_own_changes_and_those_of_what_schedulers_have_of_it():
    caches = Caches((), (TOPOLOGY,))
    keys = listening(caches)
    caches.topologies.apply_event("ADDED", cluster_topology("zone", name="racks"))
    assert keys == {TopologyKey("racks")}
    steps = [
        (theirs("racks"), {TopologyKey("racks")}),
        (theirs("unrelated"), set()),
        (theirs("left", owner="gone"), {TopologyKey("gone")}),
    ]
    for found, woken in steps:
        keys.clear()
        caches.mirrored[TOPOLOGY].apply_event("ADDED", found)
        assert keys == woken
    keys.clear()
    caches.mirrored[TOPOLOGY].clear()
    assert TopologyKey("racks") in keys, "its kind is gone"


def a_definition(version: str = "7", *, capable: bool = True) -> Definition:
    spec = {"properties": {"spec": {"properties": {"subGroupPolicy": {}} if capable else {}}}}
    served = {"name": "v1beta1", "served": True, "schema": {"openAPIV3Schema": spec}}
    meta = ObjectMeta("podgroups.scheduling.volcano.sh", uid="d", resource_version=version)
    return Definition(meta, msgspec.Raw(msgspec.json.encode({"versions": [served]})))


def test_a_volcano_that_will_not_do_is_noticed_and_when_it_does_its_users_are_woken():
    volcano = Volcano()
    in_use = Backends({"volcano": volcano}, "volcano")
    caches = Caches(in_use.kept, inspected=in_use.inspected)
    caches.sets.apply_event("ADDED", read_set(a_set("a:1")))
    schedulers, (cache,), keys = Schedulers(caches, in_use), caches.definitions.values(), listening(caches)
    assert schedulers.lacking(volcano) == "", "nobody has looked"
    cache.replace([], "5")
    assert "install Volcano 1.14" in schedulers.lacking(volcano)
    cache.apply_event("ADDED", a_definition(capable=False))
    assert "lacks" in schedulers.lacking(volcano)
    keys.clear()
    cache.apply_event("MODIFIED", a_definition("8"))
    assert REPLICA in keys
    assert schedulers.lacking(volcano) == ""
    assert schedulers.lacking(KAI) == schedulers.lacking(None) == ""
    assert IN_USE.inspected == ()


def test_a_backend_that_cannot_judge_a_definition_says_so():
    confused = type("Confused", (Volcano,), {"lacks": lambda *_: 1 / 0})()
    in_use = Backends({"volcano": confused}, "volcano")
    caches = Caches(in_use.kept, inspected=in_use.inspected)
    next(iter(caches.definitions.values())).replace([], "5")
    assert "could not be judged: ZeroDivisionError" in Schedulers(caches, in_use).lacking(confused)
