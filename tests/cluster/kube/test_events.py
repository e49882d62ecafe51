"""Events on the real server, in both event APIs."""

from __future__ import annotations

from typing import Any

import pytest

from grove.api.intents import EventRecord, ObjectRef
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import CONFIG_MAPS, EVENTS, Resource
from grove.kube.events import EventRecorder

pytestmark = pytest.mark.cluster

TIMEOUT = 120.0
CORE_EVENTS = Resource("", "v1", "events", "Event")


async def regarded_object(client: Client, namespace: str) -> ObjectRef:
    body = {"metadata": {"name": "my-inference"}}
    created = await client.create(CONFIG_MAPS, body, namespace=namespace, as_type=Object)
    return ObjectRef("v1", "ConfigMap", "my-inference", namespace, created.metadata.uid)


async def list_events(client: Client, namespace: str, resource: Resource) -> list[dict[str, Any]]:
    return (await client.list(resource, as_type=dict, namespace=namespace)).items


async def test_two_notes_are_two_events_in_both_event_apis(client: Client, namespace: str) -> None:
    regarding = await regarded_object(client, namespace)
    recorder = EventRecorder(client, "podcliqueset-controller", "operator-1")
    recorder.start()
    for index in range(2):
        note = f"my-inference-{index} created"
        recorder.record(EventRecord(regarding, "PodCliqueCreateSuccessful", note, "Create"))
    await recorder.close(TIMEOUT)
    events = await list_events(client, namespace, EVENTS)
    assert sorted(event["note"] for event in events) == ["my-inference-0 created", "my-inference-1 created"]
    # What `kubectl describe` reads: the core API's view of the same events, found by the object's UID.
    described = [
        event
        for event in await list_events(client, namespace, CORE_EVENTS)
        if event["involvedObject"]["uid"] == regarding.uid
    ]
    assert sorted(event["message"] for event in described) == [
        event["note"] for event in sorted(events, key=lambda e: e["note"])
    ]
    assert {event["reportingComponent"] for event in described} == {"podcliqueset-controller"}


async def test_repeated_event_is_a_series_on_the_server(client: Client, namespace: str) -> None:
    regarding = await regarded_object(client, namespace)
    recorder = EventRecorder(client, "podcliqueset-controller", "operator-1")
    failed = EventRecord(regarding, "PodCreateFailed", "quota exceeded", "Create", warning=True)
    for times in (1, 2):
        for _ in range(times):
            recorder.record(failed)
        await recorder.close(TIMEOUT)  # publishes the rest: first the event, then its series
    (event,) = await list_events(client, namespace, EVENTS)
    assert (event["type"], event["series"]["count"]) == ("Warning", 3)
