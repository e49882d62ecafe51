"""The kinds that we serve."""

from __future__ import annotations

from grove.api.cliques import PodClique
from grove.api.gangs import PodGang
from grove.api.groups import PodCliqueScalingGroup
from grove.api.sets import PodCliqueSet
from grove.api.topology import ClusterTopology, ClusterTopologyBinding

Served = PodCliqueSet | PodClique | PodCliqueScalingGroup | PodGang | ClusterTopology | ClusterTopologyBinding

KINDS: tuple[type[Served], ...] = (
    PodCliqueSet,
    PodClique,
    PodCliqueScalingGroup,
    PodGang,
    ClusterTopology,
    ClusterTopologyBinding,
)
