"""An error of a scheduler object or of the pod limit emits an event when it appears, and only then."""

from __future__ import annotations

import msgspec

from grove.api.naming import labels
from grove.api.types.podclique import PodClique
from grove.api.types.podgang import PodGang
from grove.operator.caches.registry import Caches
from grove.operator.engine.scheduler_error_events import SchedulerErrorEvents
from grove.operator.keys import ReplicaKey, SetKey
from grove.plan.desired.limits import too_many_pods
from grove.plan.model import UserError
from tests.plan.builders import a_set, read_set

KEY = ReplicaKey("ns", "wl", 0)


def user_error(message: str = "no queue", clique: str = "wl-0-a") -> UserError:
    return UserError(clique, "ERR_SYNC_PODGROUP", message, "wl-0", "KAIBackendMappingFailed")


def meta(name: str) -> dict[str, object]:
    object_labels = {labels.MANAGED_BY: labels.OPERATOR}
    return {
        "name": name,
        "namespace": "ns",
        "uid": f"u-{name}",
        "resourceVersion": "3",
        "labels": object_labels,
    }


def with_gang() -> Caches:
    caches = Caches()
    gang = msgspec.convert({"metadata": meta("wl-0"), "spec": {"podgroups": []}}, PodGang)
    caches.gangs.apply_event("ADDED", gang)
    return caches


def new_events(events: SchedulerErrorEvents, *user_errors: UserError) -> list[tuple[str, str, str, bool]]:
    return [
        (each.regarding.uid, each.reason, each.note, each.warning)
        for each in events.new_events(KEY, "ns", user_errors)
    ]


EVENT = ("u-wl-0", "KAIBackendMappingFailed", "no queue", True)


def test_error_emits_event_again_only_after_it_cleared():
    events = SchedulerErrorEvents(with_gang())
    assert new_events(events, user_error(), user_error(clique="wl-0-b")) == [EVENT], (
        "once for all cliques of the gang"
    )
    assert new_events(events, user_error()) == []
    assert new_events(events, user_error("another queue")) == [(*EVENT[:2], "another queue", True)]
    assert new_events(events) == []
    assert new_events(events, user_error()) == [EVENT]
    events.forget(KEY)
    assert new_events(events, user_error()) == [EVENT]


def test_error_of_missing_gang_emits_event_once_it_exists():
    caches = Caches()
    events = SchedulerErrorEvents(caches)
    assert new_events(events, user_error()) == []
    caches.gangs.apply_event("ADDED", next(iter(with_gang().gangs)))
    assert new_events(events, user_error()) == [EVENT]


def test_error_reported_by_former_leader_emits_no_event():
    caches = with_gang()
    description = "[Operation: Sync, Code: ERR_SYNC_PODGROUP] message: no queue"
    errors = [{"code": "ERR_SYNC_PODGROUP", "description": description, "observedAt": "2026-01-01T00:00:00Z"}]
    spec = {"roleName": "a", "replicas": 1, "podSpec": {}}
    body = {"metadata": meta("wl-0-a"), "spec": spec, "status": {"lastErrors": errors}}
    clique = msgspec.json.decode(msgspec.json.encode(body), type=PodClique)
    caches.cliques.apply_event("ADDED", clique)
    assert new_events(SchedulerErrorEvents(caches), user_error()) == []
    assert new_events(SchedulerErrorEvents(caches), user_error("something else")) != []


def test_pod_limit_exceeded_emits_event_once():
    caches = Caches()
    key = SetKey("ns", "wl")
    caches.sets.replace([read_set(a_set("a:1"))], "1")
    user_error = too_many_pods(9, 5)
    events = SchedulerErrorEvents(caches)
    (event,) = events.new_events(key, "ns", (user_error,))
    assert (event.regarding.kind, event.regarding.name, event.reason) == (
        "PodCliqueSet",
        "wl",
        "PodLimitExceeded",
    )
    assert "asks for 9 pods" in event.note
    assert list(events.new_events(key, "ns", (user_error,))) == []
    assert list(events.new_events(key, "ns", ())) == []
    assert len(list(events.new_events(key, "ns", (user_error,)))) == 1
