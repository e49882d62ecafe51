"""Lost pods: their labels are restored before anything else is planned for their replica."""

from __future__ import annotations

from msgspec.structs import replace

from grove.api.naming import labels
from grove.plan.members.lost_pods import restore_labels
from grove.plan.replica import plan_replica
from tests.plan.builders import a_pod, a_set
from tests.plan.simulator.simulator import Simulator

LABELS = {labels.MANAGED_BY: labels.OPERATOR, labels.PART_OF: "wl", labels.SET_REPLICA: "0"}


def test_restore_labels_patches_by_name_and_uid():
    pod = a_pod("p")
    patch = restore_labels(replace(pod, metadata=replace(pod.metadata, labels={**LABELS, "other": "x"})))
    assert (patch.target.kind, patch.target.name) == ("Pod", "p")
    assert patch.body == {"metadata": {"uid": "uid-p", "labels": LABELS}}


def test_replica_with_lost_pods_plans_nothing_else():
    sim = Simulator(a_set("a:2"))
    sim.settle(0)
    snapshot = sim.snapshot(0)
    lost = snapshot.pods[0]
    plan = plan_replica(replace(snapshot, pods=snapshot.pods[1:], lost_pods=(lost,)), sim.now)
    assert [intent.id for intent in plan.intents] == [f"patch Pod ns/{lost.metadata.name}"]
    assert plan.report is None
