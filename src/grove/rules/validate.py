"""What is refused of a PodCliqueSet, and why."""

from __future__ import annotations

from typing import Any

from grove.rules.model import Facts, Verdict

Body = dict[str, Any]


def on_create(new: Body, facts: Facts) -> Verdict:
    """Judges a set that is to be made: the raw JSON object, after `default_set`. Never raises."""
    return Verdict()


def on_update(old: Body, new: Body, facts: Facts) -> Verdict:
    """Judges a change: both raw JSON objects, the new one after `default_set`. Never raises."""
    return Verdict()


def topologies_named(body: Body) -> frozenset[str]:
    """Topologies that the set names: whoever asks for a verdict should know them, or know that they are not."""
    return frozenset()
