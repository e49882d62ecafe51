"""What the rules and the translation are told of the cluster and of the operator's configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from grove.api.configuration.types import DEFAULT_SCHEDULER, DynamoTopology, OperatorConfiguration
from grove.dynamo import keys
from grove.dynamo.graph import Graph


class GraphContext(Struct, frozen=True):
    """Facts; `of` takes those that follow from the configuration."""

    topology: DynamoTopology = DynamoTopology()
    topology_aware: bool = False
    """Whether Grove takes topology constraints."""
    topologies: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Every topology that is known, with its domains from broad to narrow."""
    leader_worker_sets: bool = False
    """Whether the cluster serves them."""
    claim_templates: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    """What ResourceClaimTemplates make claims of, by name: those that a deployment's GPUs are counted by."""
    node_labels: frozenset[str] | None = None
    """Those of the labels that domains are mapped to which a node has; None if nobody has looked yet."""
    kueue_topologies: Mapping[str, tuple[str, ...]] | None = None
    """The node labels that are levels of Kueue's topologies, by topology; None if nobody has looked yet."""
    without_grove: bool = True
    """Whether deployments may decline Grove."""
    pull_secrets: bool = False
    """Whether Secrets for pulling images are looked for."""
    scheduler: str = ""
    """What pods of sets must name, where the default is not Kubernetes' own scheduler."""

    @classmethod
    def of(cls, config: OperatorConfiguration) -> GraphContext:
        """What the configuration says."""
        default = config.scheduler.default_profile_name
        return cls(
            config.dynamo.topology_aware_scheduling,
            config.topology_aware_scheduling.enabled,
            without_grove=config.dynamo.without_grove,
            pull_secrets=config.dynamo.image_pull_secret_discovery,
            scheduler=default if default != DEFAULT_SCHEDULER else "",
        )


def provider(annotations: Mapping[str, str]) -> str:
    """Which backend runs a deployment: the one that was written down, else the one that it asks for."""
    if stored := annotations.get(keys.PROVIDER):
        return stored
    opted_out = annotations.get(keys.ENABLE_GROVE, "").strip().lower() == "false"
    return keys.COMPONENTS if opted_out else keys.GROVE


def runs_on_grove(graph: Graph) -> bool:
    """Whether a deployment becomes a PodCliqueSet."""
    return provider(graph.own_annotations) == keys.GROVE
