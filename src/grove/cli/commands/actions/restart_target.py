"""What `grove restart` restarts: the workload that a user has named, and the part of it."""

from __future__ import annotations

import asyncio

from msgspec import Struct

from grove.api.naming import labels, names
from grove.api.types.podclique import PodClique
from grove.api.types.podcliquescalinggroup import PodCliqueScalingGroup
from grove.api.types.podcliqueset import PodCliqueSet
from grove.api.types.podgang import PodGang
from grove.cli.commands.actions.workload import GRAPHS, SETS, find_workload, named, raise_unknown
from grove.dynamo.api.graph_deployment import DynamoGraphDeployment
from grove.explanation.subtree import POD, UnknownObject, kind_and_name
from grove.kube.client.client import Client, Object
from grove.kube.client.resource import Resource
from grove.kube.errors import ConfigError
from grove.operator.caches.owners import owning_graph
from grove.operator.caches.resources import resource_of
from grove.rules.restart_units import RestartUnit, unit_problem

_PARTS = tuple(resource_of(each.KIND) for each in (PodCliqueScalingGroup, PodClique, PodGang))


class UnitOptions(Struct, frozen=True):
    """The options that name a part of a set."""

    replica: int | None = None
    clique: str | None = None
    group: str | None = None
    group_replica: int | None = None

    @property
    def given(self) -> bool:
        return self != UnitOptions()

    def unit(self) -> RestartUnit:
        """The unit. Raises ConfigError for options that exclude or need each other."""
        if self.clique is not None and self.group is not None:
            raise ConfigError(
                "--clique and --group exclude each other: a replica of a group restarts as a whole"
            )
        if self.group_replica is not None and self.group is None:
            raise ConfigError("--group-replica needs --group")
        for option, value in (("--replica", self.replica), ("--group-replica", self.group_replica)):
            if value is not None and value < 0:
                raise ConfigError(f"{option} {value}: indices begin with 0")
        return RestartUnit(self.replica, self.clique or self.group or "", self.group_replica)


class RestartTarget(Struct, frozen=True):
    """A set and its part; or a graph, which has no set with every backend."""

    unit: RestartUnit
    workload: PodCliqueSet | None = None
    graph: DynamoGraphDeployment | None = None
    """The graph that is restarted as a whole, by its own means."""

    @property
    def object(self) -> tuple[Resource, str]:
        """The object that the restart is requested on."""
        if self.graph is not None:
            return GRAPHS, self.graph.metadata.name
        assert self.workload is not None
        return SETS, self.workload.metadata.name


async def find_target(client: Client, written: str, namespace: str, chosen: UnitOptions) -> RestartTarget:
    """What a user wants to restart. Raises KubeError."""
    unit, (kind, name) = chosen.unit(), kind_and_name(written)
    if kind == POD:
        raise ConfigError(f"{written}: a pod is replaced when it is deleted: kubectl delete pod {name}")
    if kind in ("", SETS.kind, GRAPHS.kind):
        graph, workload = await asyncio.gather(
            named(client, GRAPHS, DynamoGraphDeployment, name, namespace, asked=kind != SETS.kind),
            named(client, SETS, PodCliqueSet, name, namespace, asked=kind != GRAPHS.kind),
        )
        if graph is not None and not chosen.given:
            return RestartTarget(unit, _set_of(graph, workload), graph)
        if graph is not None or workload is not None:
            found = await find_workload(client, written, namespace)
            _check_unit(unit, found.workload)
            return RestartTarget(unit, found.workload, None if chosen.given else found.graph)
        if kind:
            await raise_unknown(client, written, namespace)
    part = await _named_part(client, kind, name, namespace)
    if part is None:
        await raise_unknown(client, written, namespace)
    if chosen.given:
        raise ConfigError(f"{written} is a part of a set already: leave out the options that name one")
    found = await find_workload(client, f"{SETS.kind}/{part.metadata.labels.get(labels.PART_OF)}", namespace)
    unit = _unit_of(part, found.workload)
    _check_unit(unit, found.workload)
    return RestartTarget(unit, found.workload)


def _set_of(graph: DynamoGraphDeployment, workload: PodCliqueSet | None) -> PodCliqueSet | None:
    key = owning_graph(workload.metadata) if workload is not None else None
    return workload if key is not None and key.name == graph.metadata.name else None


def _check_unit(unit: RestartUnit, workload: PodCliqueSet) -> None:
    """Raises ConfigError for a unit that the set does not have."""
    name, replicas = workload.metadata.name, workload.spec.replicas
    if problem := unit_problem(unit.annotation, workload.spec.template):
        raise ConfigError(f"PodCliqueSet {name}: {problem.removeprefix('restarts nothing: ')}")
    if unit.replica is not None and unit.replica >= replicas:
        raise ConfigError(f"PodCliqueSet {name} has no replica {unit.replica}: it has {replicas}, from 0")


async def _named_part(client: Client, kind: str, name: str, namespace: str) -> Object | None:
    """The group, clique or gang of this name: the widest."""
    found = await asyncio.gather(
        *(named(client, each, Object, name, namespace, asked=kind in ("", each.kind)) for each in _PARTS)
    )
    return next((each for each in found if each is not None), None)


def _unit_of(part: Object, workload: PodCliqueSet) -> RestartUnit:
    """The unit that a group, clique or gang is. Raises UnknownObject for one that is not of the set."""
    found, name = part.metadata.labels, part.metadata.name
    replica = found.get(labels.SET_REPLICA, "")
    if not replica.isdecimal():
        raise UnknownObject(f"{name} has no label {labels.SET_REPLICA}: name its set, with --replica")
    index, set_name = int(replica), workload.metadata.name
    if clique := found.get(labels.CLIQUE_TEMPLATE):
        within = found.get(labels.GROUP_REPLICA, "")
        if not within.isdecimal():
            return RestartUnit(index, clique)
        group = found.get(labels.GROUP, "").removeprefix(names.group(set_name, index, ""))
        return RestartUnit(index, group, int(within))
    for template in workload.spec.template.pod_clique_scaling_groups:
        group = names.group(set_name, index, template.name)
        if name == group:
            return RestartUnit(index, template.name)
        number = name.removeprefix(f"{group}-")
        if number != name and number.isdecimal():  # a scaled gang, which is a replica of the group
            return RestartUnit(index, template.name, int(number) + template.min_available)
    return RestartUnit(index)
