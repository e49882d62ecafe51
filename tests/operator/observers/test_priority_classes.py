"""When the PriorityClass of a set counts as missing."""

from __future__ import annotations

from typing import Any

from grove import timing
from grove.api.meta import ObjectMeta
from grove.api.types.kubernetes_objects import PriorityClass
from grove.operator.caches.registry import Caches
from grove.operator.observers.priority_classes import PriorityClassLookup
from grove.plan.snapshot import PriorityLookup
from tests.plan.builders import a_set, read_set

UNKNOWN, MISSING = PriorityLookup(), PriorityLookup(missing=True)


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def named(name: str, set_name: str = "wl") -> Any:
    return read_set(a_set("a", name=set_name, **({"priorityClassName": name} if name else {})))


def a_class(name: str) -> PriorityClass:
    return PriorityClass(ObjectMeta(name=name))


def test_class_is_missing_after_a_while() -> None:
    caches, clock = Caches(), Clock()
    caches.priority_classes.replace([a_class("low")], "1")
    lookup = PriorityClassLookup(caches, clock)
    due = clock.now + timing.PRIORITY_CLASS_DELAY
    assert lookup.of(named("low")) == lookup.of(named("")) == UNKNOWN
    assert lookup.of(named("high")) == PriorityLookup(due=due)
    clock.now = due - 1
    assert lookup.of(named("high")) == PriorityLookup(due=due), "the time counts from the first lookup"
    clock.now = due
    assert lookup.of(named("high")) == MISSING
    caches.priority_classes.replace([a_class("high")], "2")
    assert lookup.of(named("high")) == UNKNOWN
    caches.priority_classes.replace([], "3")
    assert lookup.of(named("high")).due == due + timing.PRIORITY_CLASS_DELAY, "a new wait"


def test_class_is_not_missing_if_classes_cannot_be_listed() -> None:
    clock = Clock()
    lookup = PriorityClassLookup(Caches(), clock)
    assert lookup.of(named("high")) == UNKNOWN
    clock.now += timing.PRIORITY_CLASS_DELAY
    assert lookup.of(named("high")) == UNKNOWN


def test_name_that_no_set_has_any_more_is_forgotten() -> None:
    """The next set that names it may be created together with the class."""
    caches, clock = Caches(), Clock()
    caches.priority_classes.replace([], "1")
    lookup = PriorityClassLookup(caches, clock)
    caches.sets.replace([named("kept", "a"), named("gone", "b")], "1")
    for name in ("kept", "gone"):
        lookup.of(named(name))
    clock.now += timing.PRIORITY_CLASS_DELAY
    caches.sets.replace([named("kept", "a")], "2")
    assert lookup.of(named("kept")) == MISSING
    assert lookup.of(named("gone")).due == clock.now + timing.PRIORITY_CLASS_DELAY
