"""The topologies of a cluster, and which of them are shown."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from grove.api.types.clustertopology import ClusterTopology, ClusterTopologyBinding
from grove.cluster_state.kinds import TOPOLOGIES, TOPOLOGY_BINDINGS
from grove.explanation.suggestions import closest
from grove.kube.client.client import Client
from grove.kube.errors import ApiError, ConfigError
from grove.views.topology.domain_view import TopologyTree, topology_tree
from grove.views.topology.node_load import NodeLoad

AnyTopology = ClusterTopology | ClusterTopologyBinding


def chosen_topologies(
    topologies: Iterable[ClusterTopology], bindings: Iterable[ClusterTopologyBinding], name: str | None
) -> list[AnyTopology]:
    """The topology of this name; without a name all, sorted. A ClusterTopology goes before a
    ClusterTopologyBinding of the same name. Raises ConfigError for an unknown name."""
    known: dict[str, AnyTopology] = {each.metadata.name: each for each in bindings}
    known |= {each.metadata.name: each for each in topologies}
    if name is not None and name not in known:
        raise ConfigError(_unknown(name, sorted(known)))
    return [known[each] for each in ([name] if name is not None else sorted(known))]


def topology_trees(chosen: Sequence[AnyTopology], nodes: Sequence[NodeLoad]) -> tuple[TopologyTree, ...]:
    """Their trees, or a tree without levels if there is no topology."""
    if not chosen:
        return (topology_tree("", (), nodes),)
    return tuple(
        topology_tree(each.metadata.name, [(lv.domain, lv.key) for lv in each.spec.levels], nodes)
        for each in chosen
    )


async def read_trees(client: Client, name: str | None) -> tuple[TopologyTree, ...]:
    """The trees without nodes, which are known before the nodes and pods of the cluster are read; none if
    topologies cannot be listed, or the name is unknown."""
    try:
        topologies, bindings = await asyncio.gather(
            client.list(TOPOLOGIES, as_type=ClusterTopology),
            client.list(TOPOLOGY_BINDINGS, as_type=ClusterTopologyBinding),
        )
        return topology_trees(chosen_topologies(topologies.items, bindings.items, name), ())
    except (ApiError, ConfigError):  # reported when the rest is read
        return ()


def _unknown(name: str, known: list[str]) -> str:
    close = closest(name, known)
    hint = f"did you mean {close}? " if close else ""
    there = f"topologies: {', '.join(known)}" if known else "this cluster has none"
    return f"--topology {name}: no ClusterTopology of this name: {hint}{there}"
