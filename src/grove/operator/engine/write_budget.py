"""Limits how many writes one pass sends: the rest of a larger plan follows in the next pass, after those of
other keys."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from grove import timing
from grove.api.intents import Intent
from grove.kube.executor.outcome import IntentState, Outcome
from grove.operator.engine.key_state import KeyState
from grove.plan.model import Plan
from grove.plan.writes.collector import bounded


def limit_writes(state: KeyState, plan: Plan) -> Plan:
    """The plan with at most `timing.WRITES_PER_PASS` writes, those that failed in the previous pass last."""
    if len(plan.intents) <= timing.WRITES_PER_PASS:
        return plan
    intents = bounded(plan.intents, timing.WRITES_PER_PASS, state.failed_writes)
    return replace(plan, intents=intents, partial=True, only_statuses_left=False)


def record_failures(state: KeyState, intents: Sequence[Intent], outcome: Outcome) -> bool:
    """Store the failed writes of a plan that was cut. Returns whether the rest should be planned at once,
    which is so if most writes succeeded."""
    if len(intents) < timing.WRITES_PER_PASS:
        if state.failed_writes:
            state.failed_writes = frozenset()
        return False
    state.failed_writes = frozenset(
        result.intent.id for result in outcome.results if result.state is not IntentState.DONE
    )
    return 0 < 2 * len(state.failed_writes) < len(intents)
