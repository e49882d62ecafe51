"""What admission and rendering need to know about the cluster and the operator's configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from grove.api.configuration.types import DEFAULT_SCHEDULER, DynamoTopology, OperatorConfiguration
from grove.dynamo import keys
from grove.dynamo.graph import Graph


class GraphContext(Struct, frozen=True):
    """Facts about cluster and configuration; `of` fills in those that follow from the configuration."""

    topology: DynamoTopology = DynamoTopology()
    topology_aware: bool = False
    """Whether the operator accepts topology constraints of sets."""
    topologies: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Every known topology, with its domains from broad to narrow."""
    leader_worker_sets: bool = False
    """Whether the cluster serves LeaderWorkerSets."""
    inference_pools: bool = True
    """Whether the cluster serves InferencePools; False if it is known not to."""
    claim_templates: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    """The specs of the ResourceClaimTemplates that the GPUs of a graph are counted by, by name."""
    node_labels: frozenset[str] | None = None
    """The node labels, of those that domains are mapped to, that some node has; None if not known yet."""
    kueue_topologies: Mapping[str, tuple[str, ...]] | None = None
    """The node labels that are levels of Kueue's topologies, by topology; None if not known yet."""
    without_grove: bool = True
    """Whether graphs may opt out of Grove (`nvidia.com/enable-grove: "false"`)."""
    pull_secrets: bool = False
    """Whether image pull Secrets are discovered."""
    converts: bool = True
    """Whether graphs are converted between the versions; not by an operator of some namespaces."""
    scheduler: str = ""
    """The schedulerName that pods of sets need; empty if the default is Kubernetes' own scheduler."""

    @classmethod
    def of(cls, config: OperatorConfiguration) -> GraphContext:
        """The part of the context that follows from the configuration."""
        default = config.scheduler.default_profile_name
        return cls(
            config.dynamo.topology_aware_scheduling,
            config.topology_aware_scheduling.enabled,
            without_grove=config.dynamo.without_grove,
            pull_secrets=config.dynamo.image_pull_secret_discovery,
            converts=not config.namespaces,
            scheduler=default if default != DEFAULT_SCHEDULER else "",
        )


def provider(annotations: Mapping[str, str]) -> str:
    """The backend of a graph: the one recorded in its annotations, else the one that it requests."""
    if stored := annotations.get(keys.PROVIDER):
        return stored
    opted_out = annotations.get(keys.ENABLE_GROVE, "").strip().lower() == "false"
    return keys.COMPONENTS if opted_out else keys.GROVE


def runs_on_grove(graph: Graph) -> bool:
    """Whether a graph is rendered as a PodCliqueSet."""
    return provider(graph.own_annotations) == keys.GROVE
