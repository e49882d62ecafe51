"""Events about fabric domains: their identity, and those of failed writes."""

from __future__ import annotations

from msgspec.structs import replace

from grove.api.event_reasons import EventReason
from grove.api.intents import Create, Delete, Patch
from grove.plan.fabric.events import domain_event, failure_events
from tests.plan.fabric.test_planner import AUTO, ONE, TWO, domain_snapshot, managed_domain, plan_domain

NO = ValueError("no")


def test_event_is_identified_by_the_domain_and_not_its_note():
    def identity(found, note):
        snapshot = domain_snapshot("inference-0", found=found)
        return domain_event(snapshot, AUTO, EventReason.IMEX_CHANNEL_BUSY, note).identity

    found = managed_domain("inference-0", AUTO)
    recreated = replace(found, metadata=replace(found.metadata, uid="d2"))
    assert identity(found, "1 pod") == identity(found, "2 pods")
    assert identity(None, "1 pod") == identity(None, "2 pods") != ""
    assert len({identity(each, "1 pod") for each in (None, found, recreated)}) == 3


def writes(snapshot, kind):
    return [intent for intent in plan_domain(snapshot).intents if isinstance(intent, kind)]


def test_failed_create_is_reported_on_each_consumer():
    shared = domain_snapshot("team", TWO, ONE)
    (create,) = writes(shared, Create)
    found = failure_events(shared, create)
    assert {event.regarding.name: event.note for event in found} == dict.fromkeys(
        ("one", "two"), "Failed to create ComputeDomain team"
    )
    assert {(event.reason, event.warning, event.intent, event.on_failure) for event in found} == {
        ("ComputeDomainFailed", True, create.id, True)
    }
    automatic = domain_snapshot("inference-1", AUTO)
    (event,) = failure_events(automatic, *writes(automatic, Create))
    assert event.note == "Failed to create ComputeDomain for replica 1"


def test_failed_delete_is_reported_and_failed_patch_is_not():
    unneeded = domain_snapshot("inference-0", found=managed_domain("inference-0", AUTO))
    (delete,), (patch,) = writes(unneeded, Delete), writes(unneeded, Patch)
    assert failure_events(unneeded, delete) == (), "no set to report it on"
    owned = replace(unneeded, former_owners=(AUTO,))
    (event,) = failure_events(owned, delete)
    assert (event.reason, event.note) == (
        "ComputeDomainDeleteFailed",
        "Could not delete ComputeDomain inference-0",
    )
    assert failure_events(owned, patch) == ()
