"""A gang that cannot be told to its scheduler is an event when that begins, and only then."""

from __future__ import annotations

import msgspec

from grove.api import labels
from grove.api.cliques import PodClique
from grove.api.gangs import PodGang
from grove.operator.caches import Caches
from grove.operator.grievances import Grievances
from grove.operator.keys import ReplicaKey, SetKey
from grove.plan.limits import too_many_pods
from grove.plan.model import Complaint
from tests.plan.builders import a_set, read_set

KEY = ReplicaKey("ns", "wl", 0)


def complaint(words: str = "no queue", clique: str = "wl-0-a") -> Complaint:
    return Complaint(clique, "ERR_SYNC_PODGROUP", words, "wl-0", "KAIBackendMappingFailed")


def meta(name: str) -> dict[str, object]:
    carried = {labels.MANAGED_BY: labels.OPERATOR}
    return {"name": name, "namespace": "ns", "uid": f"u-{name}", "resourceVersion": "3", "labels": carried}


def with_gang() -> Caches:
    caches = Caches()
    gang = msgspec.convert({"metadata": meta("wl-0"), "spec": {"podgroups": []}}, PodGang)
    caches.gangs.apply_event("ADDED", gang)
    return caches


def told(by: Grievances, *complaints: Complaint) -> list[tuple[str, str, str, bool]]:
    return [
        (each.regarding.uid, each.reason, each.note, each.warning) for each in by.news(KEY, "ns", complaints)
    ]


EVENT = ("u-wl-0", "KAIBackendMappingFailed", "no queue", True)


def test_it_is_told_when_it_begins_and_again_only_after_it_was_over():
    by = Grievances(with_gang())
    assert told(by, complaint(), complaint(clique="wl-0-b")) == [EVENT], "once for all cliques of the gang"
    assert told(by, complaint()) == []
    assert told(by, complaint("another queue")) == [(*EVENT[:2], "another queue", True)]
    assert told(by) == []
    assert told(by, complaint()) == [EVENT]
    by.forget(KEY)
    assert told(by, complaint()) == [EVENT]


def test_a_gang_that_is_not_there_yet_is_told_of_when_it_is():
    caches = Caches()
    by = Grievances(caches)
    assert told(by, complaint()) == []
    caches.gangs.apply_event("ADDED", next(iter(with_gang().gangs)))
    assert told(by, complaint()) == [EVENT]


def test_what_the_leader_before_has_told_is_not_told_again():
    caches = with_gang()
    said = "[Operation: Sync, Code: ERR_SYNC_PODGROUP] message: no queue"
    errors = [{"code": "ERR_SYNC_PODGROUP", "description": said, "observedAt": "2026-01-01T00:00:00Z"}]
    spec = {"roleName": "a", "replicas": 1, "podSpec": {}}
    body = {"metadata": meta("wl-0-a"), "spec": spec, "status": {"lastErrors": errors}}
    clique = msgspec.json.decode(msgspec.json.encode(body), type=PodClique)
    caches.cliques.apply_event("ADDED", clique)
    assert told(Grievances(caches), complaint()) == []
    assert told(Grievances(caches), complaint("something else")) != []


def test_a_set_that_asks_for_too_many_pods_is_an_event_once():
    caches = Caches()
    key = SetKey("ns", "wl")
    caches.sets.replace([read_set(a_set("a:1"))], "1")
    complaint = too_many_pods(9, 5)
    by = Grievances(caches)
    (news,) = by.news(key, "ns", (complaint,))
    assert (news.regarding.kind, news.regarding.name, news.reason) == (
        "PodCliqueSet",
        "wl",
        "PodLimitExceeded",
    )
    assert "asks for 9 pods" in news.note
    assert list(by.news(key, "ns", (complaint,))) == []
    assert list(by.news(key, "ns", ())) == []
    assert len(list(by.news(key, "ns", (complaint,)))) == 1
