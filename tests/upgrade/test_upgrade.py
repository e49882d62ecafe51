"""An upgraded operator restarts no pod and rewrites only statuses of objects of an earlier build."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from grove import timing
from grove.api.intents import Patch, Status
from grove.plan.timestamps import timestamp
from tests.shared import shared_data
from tests.upgrade import recordings
from tests.upgrade.planning import Upgraded
from tests.upgrade.recordings import Recording


@pytest.mark.parametrize("name", recordings.names())
async def test_upgrade_rewrites_statuses_only(name: str) -> None:
    planned = await Upgraded(recordings.load(name)).intents()
    assert [intent.id for intent in planned if not isinstance(intent, Status)] == []


async def test_changed_template_is_planned_for() -> None:
    """Checks that the tests above can fail: with another image there are writes."""
    recording = recordings.load("0.1.0/plain")
    (body,) = recording.of("PodCliqueSet")
    body["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["containers"][0]["image"] = "next:1"
    body["metadata"]["generation"] += 1
    assert await Upgraded(recording).intents()


NAMED_BEFORE = {"b640bfbdb92d674c": "5051ce75f11792e5", "a6010da0ab55b007": "0867d7c5ef15dee1"}
"""The hashes in the recording, and those that its build computed for the class `high` of the set: they count
the class, although pods did not have it yet."""


def a_set_with_priority_class(*classes: str) -> Recording:
    """A recorded set, as its build left it with a PriorityClass: in the template and gangs, not in pods."""
    recording = recordings.load("0.1.0/plain")
    text = json.dumps(recording.objects)
    for before, after in NAMED_BEFORE.items():
        assert before in text
        text = text.replace(before, after)
    objects = json.loads(text)
    for body in objects:
        if body["kind"] == "PodCliqueSet":
            body["spec"]["template"]["priorityClassName"] = "high"
        elif body["kind"] == "PodGang":
            body["spec"]["priorityClassName"] = "high"
    api = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    objects += [{**api, "metadata": {"name": name}, "value": 7} for name in classes]
    return Recording(recording.name, recording.at, recording.options, objects)


async def test_pods_without_the_class_of_their_set_stay() -> None:
    planned = await Upgraded(a_set_with_priority_class("high")).intents()
    assert [intent.id for intent in planned if not isinstance(intent, Status)] == []


async def test_pods_of_a_set_with_a_missing_class_stay() -> None:
    recording = a_set_with_priority_class()
    upgraded = Upgraded(recording)
    assert [intent.id for intent in await upgraded.intents() if not isinstance(intent, Status)] == []
    upgraded.wait(timing.PRIORITY_CLASS_DELAY)
    planned = [intent for intent in await upgraded.intents() if not isinstance(intent, Status)]
    assert {(type(intent), intent.target.kind) for intent in planned} == {(Patch, "PodGang")}


async def test_take_over_from_upstream_restarts_no_pod() -> None:
    """Objects of upstream's operator get our labels and lose the finalizers that only upstream uses."""
    objects = json.loads(shared_data("takeover/go-grove.json").read_text())["items"]
    last = max(timestamp(body["metadata"]["creationTimestamp"]) for body in objects)
    planned = await Upgraded(Recording("upstream", last + 60, {}, objects)).intents()
    patches = [intent for intent in planned if isinstance(intent, Patch)]
    assert [intent.id for intent in planned if not isinstance(intent, Patch | Status)] == []
    assert Counter(patch.target.kind for patch in patches) == {
        "Pod": 22,
        "PodClique": 14,
        "PodGang": 6,
        "PodCliqueScalingGroup": 2,
    }
    written = {(patch.target.kind, field) for patch in patches for field in _fields(patch)}
    assert written == {
        ("Pod", "labels grove.io/clique"),
        ("Pod", "labels grove.io/pod-template-hash"),
        ("PodClique", "labels grove.io/clique"),
        ("PodClique", "labels grove.io/pod-template-hash"),
        ("PodClique", "finalizers"),
        ("PodCliqueScalingGroup", "finalizers"),
        ("PodGang", "labels grove.io/podcliqueset-replica-index"),
        ("PodGang", "spec"),
    }


def _fields(patch: Patch) -> set[str]:
    """The fields that a patch writes, without the resourceVersion and UID that it is conditional on."""
    metadata = patch.body.get("metadata", {})
    found = {f"labels {name}" for name in metadata.get("labels", {})}
    found |= {field for field in metadata if field not in ("labels", "resourceVersion", "uid")}
    return found | {field for field in patch.body if field != "metadata"}
