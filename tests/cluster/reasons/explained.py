"""What `grove explain` says about the sets of causes, from one reading of the cluster."""

from __future__ import annotations

from collections.abc import Iterable

from grove.api.configuration.types import LeaderElection
from grove.cluster_state.reading import read_state
from grove.explanation.explain import Preparation
from grove.explanation.model import Explanation
from grove.kube.client.client import Client
from tests.cluster.reasons.causes import NAME, Cause


async def explained(client: Client, causes: Iterable[Cause]) -> dict[str, Explanation]:
    """By cause, the explanation of its set."""
    preparation = Preparation(LeaderElection().resource_name)
    explainer = preparation.explainer(await read_state(client, preparation.kinds, "default"))
    return {cause.name: explainer.explain(NAME, cause.name) for cause in causes}


def wrongly_explained(causes: Iterable[Cause], found: dict[str, Explanation]) -> dict[str, tuple[str, ...]]:
    """By cause with another code first, the code that was expected, and those that were found."""
    return {
        cause.name: (cause.code, *(reason.code for reason in found[cause.name].reasons))
        for cause in causes
        if [reason.code for reason in found[cause.name].reasons][:1] != [cause.code]
    }
