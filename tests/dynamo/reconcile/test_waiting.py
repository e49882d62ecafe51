"""What pods wait for, in the status and the events of a graph."""

from __future__ import annotations

from msgspec.structs import replace

from grove.api.conditions import ConditionType
from grove.api.meta import Condition
from grove.api.types.common import LastError
from grove.dynamo.api.status import READY, WAITING
from grove.dynamo.snapshot import GraphSnapshot
from grove.plan.conditions import find
from grove.reasons.codes import ReasonCode as Code
from tests.dynamo.builders import component, deployment, with_stored
from tests.dynamo.reconcile.test_planner import clique, done, events_of, planned, snapshot, status_of

STARTING = {"replicas": 1, "ready_replicas": 0, "updated_replicas": 1, "scheduled_replicas": 1}


def waits(code: Code, message: str) -> tuple[Condition, ...]:
    return (Condition(type=ConditionType.WAITING, status="True", reason=code, message=message),)


def waiting_graph(of_set: tuple[Condition, ...], of_clique: tuple[Condition, ...]) -> GraphSnapshot:
    found = done(snapshot(deployment(component())))
    assert found.workload is not None
    workload = replace(found.workload, status=replace(found.workload.status, conditions=of_set))
    return replace(
        found, workload=workload, cliques={"app-0-worker": clique(1, **STARTING, conditions=of_clique)}
    )


def message_of(found: GraphSnapshot) -> str:
    condition = find(status_of(planned(found)).conditions, READY)
    assert condition is not None
    return condition.message


def after(found: GraphSnapshot) -> GraphSnapshot:
    """The snapshot once the status of its plan is stored."""
    assert found.stored is not None
    return with_stored(found, replace(found.stored, status=status_of(planned(found))))


def test_ready_message_has_the_counts_and_the_reason_of_the_set():
    reason = waits(Code.GANG_TOO_LARGE, "PodGang app-0: no place; add nodes")
    found = waiting_graph(reason, reason)
    assert message_of(found) == "Worker: 0 of 1 ready. GangTooLarge: PodGang app-0: no place; add nodes"


def test_reason_of_a_component_follows_that_of_the_set():
    found = waiting_graph(
        waits(Code.ADMISSION_REFUSED, "PodClique app-0-web: refused; correct it"),
        waits(Code.IMAGE_PULL_FAILED, "Pod app-0-worker-0: container main cannot pull its image; correct it"),
    )
    message = message_of(found)
    assert message.index("AdmissionRefused: ") < message.index("ImagePullFailed: ")


def test_event_is_emitted_once_for_a_reason():
    found = waiting_graph(waits(Code.GANG_TOO_LARGE, "8 free"), ())
    (event,) = events_of(planned(found))
    assert (event.reason, event.note, event.warning) == ("GangTooLarge", "8 free", True)
    later = waiting_graph(waits(Code.GANG_TOO_LARGE, "9 free"), ())
    assert events_of(planned(with_stored(later, after(found).stored))) == ()


def test_reason_goes_with_the_fact():
    waiting = after(waiting_graph(waits(Code.GANG_TOO_LARGE, "8 free"), ()))
    assert waiting.stored is not None
    assert find(waiting.stored.status.conditions, WAITING) is not None
    later = after(with_stored(waiting_graph((), ()), waiting.stored))
    assert later.stored is not None
    assert find(later.stored.status.conditions, WAITING) is None
    assert message_of(later) == "Worker: 0 of 1 ready"


def test_reason_goes_although_the_graph_has_an_error():
    waiting = after(waiting_graph(waits(Code.GANG_TOO_LARGE, "8 free"), ()))
    assert waiting.stored is not None
    spec = {**waiting.stored.spec, "providerOverride": {}}
    later = status_of(planned(with_stored(waiting_graph((), ()), replace(waiting.stored, spec=spec))))
    assert later.state == "failed"
    assert find(later.conditions, WAITING) is None


def refused(code: str, description: str) -> LastError:
    return LastError(code=code, description=description, observed_at="2026-01-01T00:00:00Z")


FORBIDDEN = 'pods "x" is forbidden: RuntimeClass "fast" not found (403 Forbidden)'


def with_errors(*errors: LastError, **counts: int) -> GraphSnapshot:
    found = done(snapshot(deployment(component())))
    return replace(
        found, cliques={"app-0-worker": clique(1, **{**STARTING, **counts}, last_errors=tuple(errors))}
    )


def test_error_of_a_clique_is_reported_before_its_condition():
    found = with_errors(refused("ERR_CREATE_POD", FORBIDDEN))
    assert message_of(found).startswith(
        "Worker: 0 of 1 ready. AdmissionRefused: PodClique app-0-worker: " + FORBIDDEN
    )
    condition = find(status_of(planned(found)).conditions, WAITING)
    assert condition is not None
    assert condition.reason == Code.ADMISSION_REFUSED
    assert [event.reason for event in events_of(planned(found))] == [Code.ADMISSION_REFUSED]


def test_error_that_may_end_at_once_is_not_reported():
    found = with_errors(refused("ERR_CREATE_POD", "the server is busy (503 ServiceUnavailable)"))
    assert message_of(found) == "Worker: 0 of 1 ready"


def test_error_of_a_ready_clique_is_not_reported():
    found = with_errors(refused("ERR_CREATE_POD", FORBIDDEN), ready_replicas=1)
    assert find(status_of(planned(found)).conditions, WAITING) is None


def test_reason_of_the_set_goes_as_soon_as_all_is_ready():
    found = waiting_graph(waits(Code.GANG_TOO_LARGE, "8 free"), ())
    ready = clique(1, **{**STARTING, "ready_replicas": 1})
    status = status_of(planned(replace(found, cliques={"app-0-worker": ready})))
    assert status.state == "successful"
    assert find(status.conditions, WAITING) is None


def test_error_of_the_set_is_reported():
    found = with_errors()
    assert found.workload is not None
    error = refused("ERR_SYNC_SERVICE", "NameConflict: Service app-0 belongs to nothing")
    status = replace(found.workload.status, last_errors=(error,))
    message = message_of(replace(found, workload=replace(found.workload, status=status)))
    assert message.startswith("Worker: 0 of 1 ready. NameConflict: NameConflict: Service app-0")
