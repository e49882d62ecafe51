"""The kinds that Grove serves: their CRDs are generated from this list."""

from __future__ import annotations

from grove.api.types.clustertopology import ClusterTopology, ClusterTopologyBinding
from grove.api.types.podclique import PodClique
from grove.api.types.podcliquescalinggroup import PodCliqueScalingGroup
from grove.api.types.podcliqueset import PodCliqueSet
from grove.api.types.podgang import PodGang

Served = PodCliqueSet | PodClique | PodCliqueScalingGroup | PodGang | ClusterTopology | ClusterTopologyBinding

KINDS: tuple[type[Served], ...] = (
    PodCliqueSet,
    PodClique,
    PodCliqueScalingGroup,
    PodGang,
    ClusterTopology,
    ClusterTopologyBinding,
)
