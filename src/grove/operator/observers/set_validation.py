"""Applies the admission rules to stored sets: where webhooks are not installed, sets arrive unchecked."""

from __future__ import annotations

from grove.api.types.podcliqueset import PodCliqueSet
from grove.operator.engine.key_state import KeyStates
from grove.operator.keys import SetKey
from grove.rules.podcliqueset.validation import errors_of_stored


def broken_rules(states: KeyStates, workload: PodCliqueSet) -> str:
    """The message with which admission refuses the set; empty if it does not. Computed once a generation."""
    state = states.of(SetKey(workload.metadata.namespace, workload.metadata.name))
    version = workload.metadata.uid, workload.metadata.generation
    if state.validated is None or state.validated[0] != version:
        state.validated = version, errors_of_stored(workload).message
    return state.validated[1]
