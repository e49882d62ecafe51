"""Fabric channels: how long pods have been unschedulable, and gangs that need too many of them (B4, B8)."""

from __future__ import annotations

import msgspec
import pytest

from grove.api.types.pod import Pod
from grove.plan.members.pod_state import unschedulable_since
from grove.plan.replica import plan_replica
from tests.plan.fabric.test_replica_domains import domain, gpu_clique, owned, resolved, workload
from tests.plan.simulator.simulator import Simulator


def pod(**condition):
    body = {"metadata": {"name": "a", "creationTimestamp": "2026-01-01T00:00:05Z"}}
    conditions = [{"type": "PodScheduled", **condition}] if condition else []
    return msgspec.convert({**body, "status": {"conditions": conditions}}, Pod)


@pytest.mark.parametrize(
    ("condition", "since"),
    [
        ({}, None),
        ({"status": "True"}, None),
        ({"status": "False", "reason": "SchedulingGated"}, None),
        ({"status": "False", "reason": "Unschedulable"}, 5),
        (
            {
                "status": "False",
                "reason": "Unschedulable",
                "lastTransitionTime": "2026-01-01T00:00:09Z",
            },
            9,
        ),
    ],
)
def test_b4_unschedulable_since_is_read_from_condition(condition, since):
    found = unschedulable_since(pod(**condition))
    assert found == (None if since is None else 1767225600 + since)


def gangs(channels, pods="worker:3"):
    """Reason and message of the condition Scheduled of the gang, and what is reported to the set."""
    sim = Simulator(workload(gpu_clique(pods)))

    def planned():
        snapshot = sim.snapshot()
        found = owned(domain("wl-0"), snapshot)
        return plan_replica(resolved(snapshot, found, channels=channels), 0.0)

    sim.execute(planned())
    again = planned()
    (status_update,) = (each for each in again.status_updates if each.target.kind == "PodGang")
    (fact,) = (fact for fact in status_update.desired.conditions if fact.type == "Scheduled")
    return fact.reason, fact.message, again.report.channel_shortage


@pytest.mark.parametrize(
    ("channels", "reason", "words"),
    [
        (None, "PodGroupsNotScheduled", "Too few pods scheduled in"),
        (3, "PodGroupsNotScheduled", "Too few pods scheduled in"),
        (0, "PodGroupsNotScheduled", "Too few pods scheduled in"),
        (
            2,
            "OneMemberPodPerNode",
            "3 pods that are in fabric domains need a node each, and 2 nodes have a channel",
        ),
        (1, "OneMemberPodPerNode", "and 1 node has a channel: use fewer pods"),
    ],
)
def test_b8_gang_needing_more_channels_than_exist_reports_it(channels, reason, words):
    said, why, shortage = gangs(channels)
    assert said == reason
    assert words in why
    assert shortage == (why if reason == "OneMemberPodPerNode" else "")
