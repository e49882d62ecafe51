"""The plan of a set: finalizer, and status from its replicas."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from grove.api.intents import Patch
from grove.api.meta import Condition
from grove.api.naming import well_known
from grove.api.types.common import LastError
from grove.api.types.podcliqueset import PodCliqueSetUpdateProgress, ReplicaUpdateProgress
from grove.plan.desired.template_hash import generation_hash
from grove.plan.model import ReplicaReport, ReplicaSummary
from grove.plan.podcliqueset import plan_set
from grove.plan.snapshot import SetSnapshot
from grove.topology.enforcement import EnforcementFacts, enforcement
from tests.plan.builders import a_set, read_set
from tests.topology.builders import a_topology, missing, packed

NOW = 1_800_000_000.0
HASH = generation_hash(read_set(a_set("a:2")))
GOOD = ReplicaSummary(available=True, updated=True, cliques=1, updated_cliques=1, generation_hash=HASH)
ERROR = LastError("ERR_CREATE_POD", "no room", "2026-01-01T00:00:00Z")


def the_set(replicas: int = 2, *finalizers: str, deleted: bool = False, generation: int = 3):
    found = read_set(a_set("a:2", replicas=replicas))
    meta = replace(
        found.metadata,
        uid="uid-set",
        resource_version="7",
        generation=generation,
        finalizers=finalizers,
        deletion_timestamp="2026-01-01T00:00:00Z" if deleted else None,
    )
    return replace(found, metadata=meta)


def status_of(plan):
    (status_update,) = plan.status_updates
    return status_update.desired


def test_finalizer_is_added_once_beside_others() -> None:
    (patch,) = plan_set(SetSnapshot(the_set(1, "someone/else"), {}), NOW).intents
    assert isinstance(patch, Patch)
    assert patch.body == {
        "metadata": {"resourceVersion": "7", "finalizers": ["someone/else", well_known.SET_FINALIZER]}
    }
    assert plan_set(SetSnapshot(the_set(1, well_known.SET_FINALIZER), {}), NOW).intents == ()


def test_status_waits_until_every_replica_has_reported() -> None:
    assert (
        plan_set(
            SetSnapshot(the_set(2, well_known.SET_FINALIZER), {0: ReplicaReport(3, GOOD)}), NOW
        ).status_updates
        == ()
    )


def test_errors_reported_before_every_replica_has_reported() -> None:
    """The rest of the status does not change, except that it says why pods wait."""
    known = the_set(3, well_known.SET_FINALIZER)
    status = status_of(plan_set(SetSnapshot(known, {0: ReplicaReport(3, GOOD, (ERROR,))}), NOW))
    assert replace(status, conditions=()) == replace(known.status, last_errors=(ERROR,))
    assert [each.reason for each in status.conditions] == ["WriteFailed"]
    slow = LastError("ERR_SLOW_CREATE", "creating pods takes longer", "2026-01-01T00:00:00Z")
    status = status_of(plan_set(SetSnapshot(known, {}, errors=(slow,)), NOW))
    assert replace(status, conditions=()) == replace(known.status, last_errors=(slow,))


@pytest.mark.parametrize(
    ("observed", "ended", "updating"),
    [(3, None, True), (2, None, False), (3, "2026-01-01T00:01:00Z", False)],
    ids=["counts", "new generation", "ended"],
)
def test_only_counts_of_update_are_marked_as_updating(observed, ended, updating) -> None:
    progress = PodCliqueSetUpdateProgress(
        update_started_at="2026-01-01T00:00:00Z",
        update_ended_at=ended,
        currently_updating=() if ended else (ReplicaUpdateProgress(0, "2026-01-01T00:00:00Z"),),
    )
    known = the_set(1, well_known.SET_FINALIZER)
    status = replace(
        known.status,
        observed_generation=observed,
        current_generation_hash=HASH,
        update_progress=progress,
    )
    reports = {0: ReplicaReport(3, replace(GOOD, updated=False, update_complete=bool(ended)))}
    (found,) = plan_set(SetSnapshot(replace(known, status=status), reports), NOW).status_updates
    assert found.updating is updating


def test_replicas_are_summed_and_surplus_ones_ignored() -> None:
    reports = {
        0: ReplicaReport(3, GOOD),
        1: ReplicaReport(3, replace(GOOD, updated=False)),
        2: ReplicaReport(3, GOOD),
    }
    status = status_of(plan_set(SetSnapshot(the_set(2), reports), NOW))
    assert (status.replicas, status.available_replicas, status.updated_replicas) == (2, 2, 1)
    assert (
        status.hpa_pod_selector == "app.kubernetes.io/managed-by=grove-operator,app.kubernetes.io/part-of=wl"
    )
    assert status.current_generation_hash == HASH
    assert status.update_progress is None, "the first template is no update"


def test_generation_observed_when_all_replicas_acted_on_it() -> None:
    late = status_of(
        plan_set(SetSnapshot(the_set(2), {0: ReplicaReport(3, GOOD), 1: ReplicaReport(2, GOOD)}), NOW)
    )
    failing = status_of(plan_set(SetSnapshot(the_set(1), {0: ReplicaReport(3, GOOD, (ERROR,))}), NOW))
    well = status_of(
        plan_set(SetSnapshot(the_set(2), {0: ReplicaReport(3, GOOD), 1: ReplicaReport(3, GOOD)}), NOW)
    )
    assert (late.observed_generation, failing.observed_generation, well.observed_generation) == (0, 0, 3)


def test_replica_errors_reported_once_cleared_on_success() -> None:
    reports = {0: ReplicaReport(3, GOOD, (ERROR,)), 1: ReplicaReport(3, GOOD, (ERROR,))}
    reported = status_of(plan_set(SetSnapshot(the_set(2), reports), NOW))
    assert reported.last_errors == (ERROR,)
    after = replace(the_set(1), status=reported)
    assert status_of(plan_set(SetSnapshot(after, {0: ReplicaReport(3, GOOD)}), NOW)).last_errors == ()


def test_known_error_keeps_its_time() -> None:
    known = replace(the_set(1), status=replace(the_set(1).status, last_errors=(ERROR,)))
    again = replace(ERROR, observed_at="2026-02-02T00:00:00Z")
    assert status_of(
        plan_set(SetSnapshot(known, {0: ReplicaReport(3, GOOD, (again,))}), NOW)
    ).last_errors == (ERROR,)


def conditions_of(workload, topology=None):
    status = status_of(plan_set(SetSnapshot(workload, {0: ReplicaReport(3, GOOD)}, topology=topology), NOW))
    return {condition.type: condition for condition in status.conditions}


def test_unavailable_levels_condition_is_set_and_removed() -> None:
    wanting = replace(read_set(packed(a_set("a"), "rack")), metadata=the_set(1).metadata)
    lost = conditions_of(wanting, a_topology("zone"))["TopologyLevelsUnavailable"]
    assert (lost.status, lost.last_transition_time) == ("True", "2027-01-15T08:00:00Z")
    earlier = replace(lost, last_transition_time="2026-01-01T00:00:00Z")
    another = replace(earlier, type="Another")
    reported = replace(wanting, status=replace(wanting.status, conditions=(earlier, another)))
    still = conditions_of(reported, missing())
    assert still["TopologyLevelsUnavailable"].reason == "ClusterTopologyNotFound"
    assert still["TopologyLevelsUnavailable"].last_transition_time == "2026-01-01T00:00:00Z"
    back = conditions_of(reported, a_topology())["TopologyLevelsUnavailable"]
    assert (back.status, back.last_transition_time) == ("False", "2027-01-15T08:00:00Z")
    indifferent = replace(the_set(1), status=reported.status)
    assert list(conditions_of(indifferent)) == ["Another", "UpdateInProgress"], "disabled, and no constraint"


def test_enforcement_of_set_is_that_of_its_replicas() -> None:
    good, bad = (enforcement(EnforcementFacts("kai", unmet=unmet)) for unmet in ("", "two racks"))

    def found(*reported: Condition | None) -> tuple[str, str, int] | None:
        reports = {n: ReplicaReport(3, replace(GOOD, enforced=each)) for n, each in enumerate(reported)}
        workload = the_set(len(reported), well_known.SET_FINALIZER)
        status = status_of(plan_set(SetSnapshot(workload, reports), NOW))
        matching = [each for each in status.conditions if each.type == good.type]
        return next(((each.status, each.message, each.observed_generation) for each in matching), None)

    assert found(None, None) is None
    assert found(good, None) == ("True", "kai is given the constraints", 3)
    assert found(good, bad) == ("False", "two racks", 3)
