"""Status and writes of a topology and its scheduler objects, row by row."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from grove.api.meta import Condition, ObjectMeta, OwnerReference
from grove.api.types.clustertopology import (
    ClusterTopologyBinding,
    ClusterTopologyBindingSpec,
    SchedulerReference,
    TopologyLevel,
)
from grove.plan.topology import SchedulerTopology, TopologyUsage, plan_shadowed, plan_topology
from grove.schedulers.backend import SchedulerObject
from grove.schedulers.kai import Kai
from tests.schedulers.builders import cluster_topology

NOW = 1_800_000_000.0
KAI = Kai()
ENABLED = ("default-scheduler", "kai-scheduler", "volcano")
CRD_MISSING = "topology CRD for scheduler backend kai-scheduler not found in cluster"


def ours(*references: tuple[str, str]):
    found = cluster_topology("zone", "rack")
    spec = replace(found.spec, scheduler_references=tuple(SchedulerReference(*each) for each in references))
    return replace(found, spec=spec, metadata=replace(found.metadata, generation=7))


def theirs(*labels: str, owner: str = "u-1", name: str = "racks") -> SchedulerObject:
    owners = (OwnerReference("grove.io/v1alpha1", "ClusterTopology", "racks", owner, controller=True),)
    meta = ObjectMeta(name=name, uid="k-1", generation=4, owner_references=owners)
    return SchedulerObject(meta, {"levels": [{"nodeLabel": label} for label in labels]})


def status_of(plan):
    (status_update,) = plan.status_updates
    return status_update.desired


def drift(status):
    return [(each.status, each.reason) for each in status.conditions if each.type == "SchedulerTopologyDrift"]


LEVELS = "expected [zone, rack], found [rack, zone]"
SAME, OTHER = theirs("zone", "rack"), theirs("rack", "zone")
ROWS = [
    # references, existing objects; status and reason, entries (scheduler, reference, sync, version, message)
    ((), [], None, []),
    (
        (),
        [SchedulerTopology(KAI, True, found=SAME)],
        ("False", "InSync"),
        [("kai-scheduler", "racks", True, 4, "")],
    ),
    (
        (),
        [SchedulerTopology(KAI, True, found=OTHER, error="KAI says no")],
        ("True", "Drift"),
        [
            (
                "kai-scheduler",
                "racks",
                False,
                4,
                'KAI Topology "racks" is recreated: expected [zone, rack], found [rack, zone]: KAI says no',
            )
        ],
    ),
    (
        (),
        [SchedulerTopology(KAI, False)],
        ("True", "Drift"),
        [("kai-scheduler", "racks", False, 0, CRD_MISSING)],
    ),
    (
        (("kai-scheduler", "x"),),
        [SchedulerTopology(KAI, True, "x", SAME)],
        ("False", "InSync"),
        [("kai-scheduler", "x", True, 4, "")],
    ),
    (
        (("kai-scheduler", "x"),),
        [SchedulerTopology(KAI, True, "x")],
        ("True", "Drift"),
        [("kai-scheduler", "x", False, 0, 'KAI Topology "x" not found')],
    ),
    (
        (("kai-scheduler", "x"),),
        [SchedulerTopology(KAI, False, "x")],
        ("True", "Drift"),
        [("kai-scheduler", "x", False, 0, CRD_MISSING)],
    ),
    (
        (("volcano", "v"), ("unknown", "n")),
        [SchedulerTopology(KAI, True, found=OTHER)],
        ("Unknown", "TopologyNotFound"),
        [
            ("kai-scheduler", "racks", False, 4, f'KAI Topology "racks" is recreated: {LEVELS}'),
            ("volcano", "v", False, 0, "scheduler backend volcano does not support topology management"),
            ("unknown", "n", False, 0, "scheduler backend unknown is not enabled"),
        ],
    ),
]


@pytest.mark.parametrize(("references", "scheduler_topologies", "condition", "entries"), ROWS)
def test_topology_sync_and_drift(references, scheduler_topologies, condition, entries):
    status = status_of(plan_topology(ours(*references), scheduler_topologies, ENABLED, NOW))
    assert drift(status) == ([condition] if condition else [])
    assert all(each.observed_generation == 7 for each in status.conditions)
    assert entries == [
        (
            each.scheduler_name,
            each.reference,
            each.in_sync,
            each.scheduler_backend_topology_observed_version,
            each.message,
        )
        for each in status.scheduler_topology_statuses
    ]
    for each in status.scheduler_topology_statuses:  # in upstream's later fields, too
        assert each.topology_reference == each.reference
        assert (
            each.scheduler_backend_topology_observed_generation
            == each.scheduler_backend_topology_observed_version
        )


def test_generation_observed_once_nothing_is_left_to_write():
    def observed(scheduler_topology):
        return status_of(plan_topology(ours(), [scheduler_topology], ENABLED, NOW)).observed_generation

    assert observed(SchedulerTopology(KAI, True, found=SAME)) == 7
    assert observed(SchedulerTopology(KAI, False)) == 7, "its CRD is not awaited"
    assert observed(SchedulerTopology(KAI, True)) == 0
    assert observed(SchedulerTopology(KAI, True, found=theirs("zone", "rack", owner="another"))) == 0
    assert observed(SchedulerTopology(KAI, True, found=SAME, error="refused")) == 0


def test_formerly_managed_object_deleted_once_referenced():
    scheduler_topology = SchedulerTopology(
        KAI, True, "x", theirs("zone", "rack", name="x"), previously_managed=SAME
    )
    (gone,) = plan_topology(ours(("kai-scheduler", "x")), [scheduler_topology], ENABLED, NOW).intents
    assert gone.id == "delete Topology racks"


def test_raising_backend_affects_only_itself():
    class RaisingBackend(Kai):
        name = "a-worse-one"

        def sync_topology(self, topology, found):
            raise RuntimeError("out of order")

    both = [SchedulerTopology(KAI, True, found=SAME), SchedulerTopology(RaisingBackend(), True)]
    status = status_of(plan_topology(ours(), both, ENABLED, NOW))
    failing, working = status.scheduler_topology_statuses
    assert (failing.scheduler_name, failing.in_sync, failing.message) == (
        "a-worse-one",
        False,
        "RuntimeError: out of order",
    )
    assert working.in_sync
    (condition,) = status.conditions
    assert condition.message.endswith("have drifted: 1 of 2; a-worse-one: RuntimeError: out of order")
    assert status.domains == "level-0, level-1"
    assert status.observed_generation == 0


def test_shadowed_binding_condition_is_set_and_removed():
    meta = ObjectMeta(name="racks", uid="b", generation=2)
    spec = ClusterTopologyBindingSpec(levels=(TopologyLevel("zone", "zone"), TopologyLevel("rack", "rack")))
    drifted = Condition(type="SchedulerTopologyDrift", status="True", reason="Drift")
    binding = ClusterTopologyBinding(metadata=meta, spec=spec)
    binding = replace(binding, status=replace(binding.status, conditions=(drifted,)))
    status = status_of(plan_shadowed(binding, NOW))
    (shadowed,) = status.conditions
    assert (shadowed.type, shadowed.status) == ("Shadowed", "True")
    free = plan_topology(replace(binding, status=status), [SchedulerTopology(KAI, False)], ENABLED, NOW)
    assert [each.type for each in status_of(free).conditions] == ["SchedulerTopologyDrift"]


def test_node_and_user_counts_kept_while_nodes_unknown():
    nodes = ({"zone": "z1", "rack": "r1"}, {"zone": "z2", "rack": "r1"}, {})
    users = tuple(f"ns/w{number:02}" for number in reversed(range(25)))
    topology = ours()
    status = status_of(plan_topology(topology, [], ENABLED, NOW, TopologyUsage(nodes, users)))
    assert status.nodes == 3
    assert [(each.domain, each.labelled_nodes, each.values) for each in status.levels] == [
        ("level-0", 2, 2),
        ("level-1", 2, 1),
    ]
    assert status.levels[1].nesting_violations == 1
    assert status.used_by.count == 25
    assert status.used_by.pod_clique_sets == tuple(f"ns/w{number:02}" for number in range(20))
    known = replace(topology, status=status)
    again = status_of(plan_topology(known, [], ENABLED, NOW + 9, TopologyUsage(None, users)))
    assert again == status


def test_free_slots_by_level_in_status():
    nodes, counted = ({"zone": "z1", "rack": "r1"},), ({1: 9, 8: 1}, {1: 2**40, 8: 0})

    def levels(topology, usage):
        status = status_of(plan_topology(topology, [], ENABLED, NOW, usage))
        return status, [{each.gpus: each.count for each in level.free_slots} for level in status.levels]

    status, found = levels(ours(), TopologyUsage(nodes, free_slots=counted))
    assert found == [{1: 9, 8: 1}, {1: 2**31 - 1, 8: 0}], "the API has 32 bits for them"
    known = replace(ours(), status=status)
    assert levels(known, TopologyUsage(nodes, free_slots=None))[0] == status, "not counted yet"
    assert levels(known, TopologyUsage(nodes))[1] == [{}, {}], "no longer counted"


def test_topology_is_planned_again_when_slots_are_due():
    usage = TopologyUsage((), free_slots=({}, {}), free_slots_due=NOW + 12)
    assert plan_topology(ours(), [], ENABLED, NOW, usage).requeue_at == NOW + 12


class FailingBackend(Kai):
    """A third-party backend that raises in every method on topologies."""

    name = "another"

    def topology_name(self, *_):
        raise RuntimeError("no name")

    sync_topology = check_topology_drift = on_topology_delete = topology_name


def test_failing_backend_does_not_affect_others():
    for reference in ("", "elsewhere"):
        failing = SchedulerTopology(
            FailingBackend(), True, reference, found=SAME, previously_managed=SAME if reference else None
        )
        plan = plan_topology(ours(), [failing, SchedulerTopology(KAI, True)], ENABLED, NOW)
        assert [intent.id for intent in plan.intents] == ["create Topology racks"]
        reported = {
            entry.scheduler_name: entry.message for entry in status_of(plan).scheduler_topology_statuses
        }
        assert reported["another"] == "RuntimeError: no name"
        assert reported["kai-scheduler"] == 'KAI Topology "racks" is being created'
        assert status_of(plan).observed_generation == 0
