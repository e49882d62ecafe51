"""A gang that cannot be told to its scheduler is an event when that begins, and only then."""

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


def user_error(words: str = "no queue", clique: str = "wl-0-a") -> UserError:
    return UserError(clique, "ERR_SYNC_PODGROUP", words, "wl-0", "KAIBackendMappingFailed")


def meta(name: str) -> dict[str, object]:
    carried = {labels.MANAGED_BY: labels.OPERATOR}
    return {"name": name, "namespace": "ns", "uid": f"u-{name}", "resourceVersion": "3", "labels": carried}


def with_gang() -> Caches:
    caches = Caches()
    gang = msgspec.convert({"metadata": meta("wl-0"), "spec": {"podgroups": []}}, PodGang)
    caches.gangs.apply_event("ADDED", gang)
    return caches


def new_events(by: SchedulerErrorEvents, *user_errors: UserError) -> list[tuple[str, str, str, bool]]:
    return [
        (each.regarding.uid, each.reason, each.note, each.warning)
        for each in by.new_events(KEY, "ns", user_errors)
    ]


EVENT = ("u-wl-0", "KAIBackendMappingFailed", "no queue", True)


def test_it_is_told_when_it_begins_and_again_only_after_it_was_over():
    by = SchedulerErrorEvents(with_gang())
    assert new_events(by, user_error(), user_error(clique="wl-0-b")) == [EVENT], (
        "once for all cliques of the gang"
    )
    assert new_events(by, user_error()) == []
    assert new_events(by, user_error("another queue")) == [(*EVENT[:2], "another queue", True)]
    assert new_events(by) == []
    assert new_events(by, user_error()) == [EVENT]
    by.forget(KEY)
    assert new_events(by, user_error()) == [EVENT]


def test_a_gang_that_is_not_there_yet_is_told_of_when_it_is():
    caches = Caches()
    by = SchedulerErrorEvents(caches)
    assert new_events(by, user_error()) == []
    caches.gangs.apply_event("ADDED", next(iter(with_gang().gangs)))
    assert new_events(by, user_error()) == [EVENT]


def test_what_the_leader_before_has_told_is_not_told_again():
    caches = with_gang()
    said = "[Operation: Sync, Code: ERR_SYNC_PODGROUP] message: no queue"
    errors = [{"code": "ERR_SYNC_PODGROUP", "description": said, "observedAt": "2026-01-01T00:00:00Z"}]
    spec = {"roleName": "a", "replicas": 1, "podSpec": {}}
    body = {"metadata": meta("wl-0-a"), "spec": spec, "status": {"lastErrors": errors}}
    clique = msgspec.json.decode(msgspec.json.encode(body), type=PodClique)
    caches.cliques.apply_event("ADDED", clique)
    assert new_events(SchedulerErrorEvents(caches), user_error()) == []
    assert new_events(SchedulerErrorEvents(caches), user_error("something else")) != []


def test_a_set_that_asks_for_too_many_pods_is_an_event_once():
    caches = Caches()
    key = SetKey("ns", "wl")
    caches.sets.replace([read_set(a_set("a:1"))], "1")
    user_error = too_many_pods(9, 5)
    by = SchedulerErrorEvents(caches)
    (news,) = by.new_events(key, "ns", (user_error,))
    assert (news.regarding.kind, news.regarding.name, news.reason) == (
        "PodCliqueSet",
        "wl",
        "PodLimitExceeded",
    )
    assert "asks for 9 pods" in news.note
    assert list(by.new_events(key, "ns", (user_error,))) == []
    assert list(by.new_events(key, "ns", ())) == []
    assert len(list(by.new_events(key, "ns", (user_error,)))) == 1
