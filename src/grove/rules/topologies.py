"""What is refused of a ClusterTopology or ClusterTopologyBinding, and why."""

from __future__ import annotations

from typing import Any

from grove.rules.model import Facts, Verdict

Body = dict[str, Any]


def on_create(new: Body, facts: Facts) -> Verdict:
    """Judges a topology of either kind that is to be made: the raw JSON object. Never raises."""
    return Verdict()


def on_update(old: Body, new: Body, facts: Facts) -> Verdict:
    """Judges a change of one. Levels may be edited in place."""
    return Verdict()
