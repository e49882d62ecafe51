"""What `grove explain` says about the sets of causes, from one reading of the cluster."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from grove.api.configuration.types import LeaderElection
from grove.cluster_state.model import KindState
from grove.cluster_state.reading import read_state
from grove.explanation.explain import Preparation
from grove.explanation.model import Explanation
from grove.kube.client.client import Client
from tests.cluster.operator.support.objects import GANGS, SETS
from tests.cluster.reasons.causes import NAME, Cause


async def explained(
    client: Client, causes: Iterable[Cause], *, written: bool = True
) -> dict[str, Explanation]:
    """By cause, the explanation of its set. `written`: with the conditions that the operator has written."""
    preparation = Preparation(LeaderElection().resource_name)
    state = await read_state(client, preparation.kinds, "default")
    if not written:
        state = replace(state, kinds={key: _without_waiting(each) for key, each in state.kinds.items()})
    explainer = preparation.explainer(state)
    return {cause.name: explainer.explain(NAME, cause.name) for cause in causes}


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
