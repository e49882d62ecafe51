"""How many GPUs the pods of a clique get, by their requests and by claims of their own."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from grove import timing
from grove.api.types.podclique import PodClique
from grove.dashboard.state.gpus.claimed_gpus import ClaimedGpus, Reader
from grove.plan.placement.demand import with_default_requests
from grove.topology.placement.needs.requests import pod_requests

if TYPE_CHECKING:
    from grove.operator.observers.cluster.free_slots import AcceleratorNames


class PodGpus:
    """Counts GPUs by the templates of cliques, of which many are equal."""

    def __init__(self, accelerators: AcceleratorNames, claimed: ClaimedGpus) -> None:
        @lru_cache(maxsize=timing.DASHBOARD_TEMPLATES)
        def gpus(template: bytes) -> int:
            try:
                requests = pod_requests({"spec": with_default_requests(msgspec.json.decode(template))})
            except Exception:  # whatever a tenant wrote: the operator reports it
                return 0
            return sum(requests[name] for name in accelerators(requests))

        self._gpus, self._claimed = gpus, claimed

    def __call__(self, clique: PodClique, reader: Reader) -> int:
        return self._gpus(bytes(clique.spec.pod_spec)) + self._claimed.of_clique(clique, reader)
