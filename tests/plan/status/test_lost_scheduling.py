"""A clique or group none of whose replicas is scheduled any more has an event, unless the cause is known."""

from __future__ import annotations

import pytest
from msgspec import Raw

from grove.api.meta import ObjectMeta
from grove.api.types.podclique import (
    PodClique,
    PodCliqueSpec,
    PodCliqueStatus,
    PodCliqueUpdateProgress,
)
from grove.api.types.podcliquescalinggroup import (
    PodCliqueScalingGroup,
    PodCliqueScalingGroupSpec,
    PodCliqueScalingGroupStatus,
    PodCliqueScalingGroupUpdateProgress,
)
from grove.plan.model import PlannedEvent
from grove.plan.status.lost_scheduling import lost_scheduling_events

STARTED, ENDED = "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"
META = ObjectMeta(name="wl-0-a", namespace="ns", uid="c")


def progress(ended: str | None) -> PodCliqueUpdateProgress:
    return PodCliqueUpdateProgress(
        update_started_at=STARTED,
        update_ended_at=ended,
        pod_clique_set_generation_hash="h",
        pod_template_hash="t",
    )


def group_progress(ended: str | None) -> PodCliqueScalingGroupUpdateProgress:
    return PodCliqueScalingGroupUpdateProgress(
        update_started_at=STARTED, update_ended_at=ended, pod_clique_set_generation_hash="h"
    )


def events(
    before: int = 2, after: int = 0, replicas: int = 2, restarted: bool = False, own=None, of_group=None
) -> tuple[PlannedEvent, ...]:
    spec = PodCliqueSpec(role_name="a", replicas=replicas, pod_spec=Raw(b"{}"))
    status = PodCliqueStatus(scheduled_replicas=before)
    found = PodClique(metadata=META, spec=spec, status=status)
    desired = PodCliqueStatus(scheduled_replicas=after, update_progress=own)
    return lost_scheduling_events(found, desired, restarted, of_group)


@pytest.mark.parametrize(
    ("facts", "emitted"),
    [
        ({}, 1),
        ({"after": 1}, 0),
        ({"before": 0}, 0),
        ({"replicas": 0}, 0),
        ({"restarted": True}, 0),
        ({"own": progress(None)}, 0),
        ({"own": progress(ENDED)}, 1),
        ({"of_group": group_progress(None)}, 0),
        ({"of_group": group_progress(ENDED)}, 1),
    ],
    ids=[
        "all lost",
        "some lost",
        "none scheduled before",
        "zero replicas",
        "restarted",
        "updated",
        "update ended",
        "group updated",
        "update of group ended",
    ],
)
def test_lost_scheduling_emits_warning_unless_expected(facts, emitted):
    assert len(events(**facts)) == emitted


def test_lost_scheduling_is_reported_on_clique_or_group():
    (event,) = events()
    assert (event.regarding.kind, event.reason, event.warning) == (
        "PodClique",
        "AllScheduledReplicasLost",
        True,
    )
    assert event.note == "None of 2 replicas is scheduled any more; 2 were before"
    assert event.reporter == "podclique-controller"
    spec = PodCliqueScalingGroupSpec(clique_names=("a",), replicas=1)
    status = PodCliqueScalingGroupStatus(scheduled_replicas=1)
    group = PodCliqueScalingGroup(metadata=META, spec=spec, status=status)
    (event,) = lost_scheduling_events(group, PodCliqueScalingGroupStatus(), False)
    assert (event.regarding.kind, event.reporter) == (
        "PodCliqueScalingGroup",
        "podcliquescalinggroup-controller",
    )
