"""A row of a table of watches: to which events it reacts, and which keys it enqueues when."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from grove import timing
from grove.api.meta import ObjectMeta
from grove.api.types.kubernetes_objects import PartialObjectMetadata
from grove.kube.cache.cache import Cache
from grove.kube.client.resource import SERVICE_ACCOUNTS
from grove.operator.caches.predicates import created
from grove.operator.watches.enqueue_slices import FanOut
from grove.operator.watches.table import Watch
from tests.operator.watches.enqueued_keys import EnqueuedKeys


def an_object(name: str, version: int = 1) -> PartialObjectMetadata:
    return PartialObjectMetadata(ObjectMeta(name, "ns", name, str(version)))


def names(old: PartialObjectMetadata | None, new: PartialObjectMetadata | None) -> list[str]:
    return [(new or old).metadata.name]


@pytest.fixture
def cache() -> Cache[PartialObjectMetadata]:
    found: Cache[PartialObjectMetadata] = Cache(SERVICE_ACCOUNTS, PartialObjectMetadata)
    found.apply_event("ADDED", an_object("existing"))
    return found


@pytest.mark.parametrize("replay", [True, False])
def test_row_with_replay_enqueues_existing_objects(cache, replay):
    keys = EnqueuedKeys([Watch(cache, names, replay=replay)])
    assert keys.take() == ({"existing": 0.0} if replay else {})
    assert keys.after(cache.apply_event, "ADDED", an_object("new", 2)) == {"new": 0.0}


def test_row_ignores_events_that_its_predicate_rejects(cache):
    keys = EnqueuedKeys([Watch(cache, names, created)])
    assert keys.after(cache.apply_event, "MODIFIED", an_object("existing", 2)) == {}
    assert keys.after(cache.apply_event, "ADDED", an_object("new", 3)) == {"new": 0.0}


@pytest.mark.parametrize("delay", [2.0, lambda old, new, key: 2.0 if key == "new" else 0.0])
async def test_row_with_delay_enqueues_key_later(cache, delay):
    keys = EnqueuedKeys([Watch(cache, names, delay=delay)])
    assert keys.after(cache.apply_event, "ADDED", an_object("new", 2)) == {"new": 2.0}


async def test_row_enqueues_large_fan_out_in_slices(cache):
    many = FanOut("owner", lambda: iter(range(2 * timing.FAN_OUT_SLICE)))
    keys = EnqueuedKeys([Watch(cache, lambda old, new: [many], delay=9.0)])
    assert keys.after(cache.apply_event, "ADDED", an_object("new", 2)) == dict.fromkeys(
        range(timing.FAN_OUT_SLICE), 0.0
    )


def test_row_without_cache_passes_the_event_on():
    handlers: list[Callable[..., None]] = []
    keys = EnqueuedKeys([Watch(handlers.append, lambda *event: event)])
    (handler,) = handlers
    assert keys.after(handler, "a", "b") == {"a": 0.0, "b": 0.0}
    assert keys.after(handler) == {}


@pytest.mark.parametrize("reset", [True, False])
def test_row_resets_backoff_if_declared(cache, reset):
    keys = EnqueuedKeys([Watch(cache, names, replay=True, reset_backoff=reset)])
    assert keys.reset == (["existing"] if reset else [])
