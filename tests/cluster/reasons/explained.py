"""What `grove explain` says about the sets of causes, from one reading of the cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from grove.cluster_state.model import KindState
from grove.cluster_state.reading import read_state
from grove.explanation.early import EarlyAnswer, explain_early
from grove.explanation.explain import Preparation
from grove.explanation.model import Explanation
from grove.kube.client.client import Client
from tests.cluster.operator.support.objects import GANGS, SETS
from tests.cluster.reasons.causes import NAME, Cause

LEASE = "of-no-operator"
"""Operators of these tests run for no election; the Lease of another test's operator would be that of one
which does not lead any more."""


async def explained(
    client: Client, causes: Iterable[Cause], *, written: bool = True
) -> dict[str, Explanation]:
    """By cause, the explanation of its set. `written`: with the conditions that the operator has written."""
    preparation = Preparation(LEASE)
    state = await read_state(client, preparation.kinds, "default")
    if not written:
        state = replace(state, kinds={key: _without_waiting(each) for key, each in state.kinds.items()})
    explainer = preparation.explainer(state)
    return {cause.name: explainer.explain(NAME, cause.name) for cause in causes}


async def explained_early(client: Client, causes: Iterable[Cause]) -> dict[str, EarlyAnswer]:
    """By cause, what is said about its set before the whole cluster is read."""
    found = {cause.name: await explain_early(client, NAME, cause.name, LEASE) for cause in causes}
    return {name: early for name, early in found.items() if early is not None}


def differing(early: Mapping[str, EarlyAnswer], whole: Mapping[str, Explanation]) -> list[str]:
    """The causes whose early answer is not the beginning of the whole one."""
    return [
        name
        for name, found in whole.items()
        if (answer := early[name].explanation).state != found.state
        or (early[name].has_reasons and answer.reasons != found.reasons)
    ]


def _without_waiting(found: KindState) -> KindState:
    if found.resource.group not in (GANGS.group, SETS.group):
        return found
    return replace(found, items=tuple(map(_cleared, found.items)))


def _cleared(item: Raw) -> Raw:
    body = msgspec.json.decode(item)
    status = body.get("status") or {}
    conditions = [each for each in status.get("conditions") or () if each["type"] != "Waiting"]
    return Raw(msgspec.json.encode({**body, "status": {**status, "conditions": conditions}}))


def wrongly_explained(causes: Iterable[Cause], found: dict[str, Explanation]) -> dict[str, tuple[str, ...]]:
    """By cause with another code first, the code that was expected, and those that were found."""
    return {
        cause.name: (cause.code, *(reason.code for reason in found[cause.name].reasons))
        for cause in causes
        if [reason.code for reason in found[cause.name].reasons][:1] != [cause.code]
    }
