"""KAI's Topology: the levels of our topology as node labels. The operator manages it, or, if the spec refers
to an existing one, only compares it.

The levels of a KAI Topology are immutable, so a Topology with other levels is deleted and created again. A
dry-run create comes first: levels that KAI rejects must not leave the cluster without a Topology.
"""

from __future__ import annotations

from collections.abc import Iterator

from grove.api.intents import Create, Delete, Intent, Target
from grove.api.meta import ObjectMeta
from grove.api.naming import labels
from grove.api.types.clustertopology import MAX_LEVELS
from grove.schedulers.backend import AnyTopology, Body, ForeignKind, SchedulerObject, TopologySync

TOPOLOGY = ForeignKind("kai.scheduler", "v1alpha1", "topologies", "Topology", namespaced=False)
_HOST = "kubernetes.io/hostname"
_DRY_RUN_SUFFIX = "-trial"
_MAX_NAME = 253


def desired(topology: AnyTopology) -> Body:
    """The Topology that the operator manages."""
    kind, meta = type(topology).KIND, topology.metadata
    owner = {"apiVersion": kind.api_version, "kind": kind.name, "name": meta.name, "uid": meta.uid}
    return {
        "apiVersion": TOPOLOGY.api_version,
        "kind": TOPOLOGY.name,
        "metadata": {
            "name": meta.name,
            "labels": {labels.MANAGED_BY: labels.OPERATOR},
            "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
        },
        "spec": {"levels": [{"nodeLabel": level.key} for level in topology.spec.levels]},
    }


def sync(topology: AnyTopology, found: SchedulerObject | None) -> TopologySync:
    """Creates the Topology, recreates it if its levels differ, or leaves it unchanged."""
    wanted = desired(topology)
    if found is None:
        return TopologySync(
            in_sync=False,
            message=f'KAI Topology "{topology.metadata.name}" is being created',
            intents=(Create(_target(topology), wanted),),
        )
    name, observed = found.metadata.name, found.metadata.generation
    if not _controlled(found.metadata, topology):
        kind = type(topology).KIND.name
        why = (
            f'KAI Topology "{name}" is not owned by this {kind}: delete it, or name it in schedulerReferences'
        )
        return TopologySync(in_sync=False, message=why, observed=observed, failed=True)
    if _levels(found) == _keys(topology):
        return TopologySync(in_sync=True, observed=observed)
    why = f'KAI Topology "{name}" is recreated: {_difference(topology, found)}'
    return TopologySync(
        in_sync=False, message=why, observed=observed, intents=_recreate(topology, wanted, found)
    )


def drift(topology: AnyTopology, reference: str, found: SchedulerObject | None) -> TopologySync:
    """Whether a Topology that the operator does not manage has the same node labels in the same order."""
    if found is None:
        return TopologySync(in_sync=False, message=f'KAI Topology "{reference}" not found')
    if _levels(found) == _keys(topology):
        return TopologySync(in_sync=True, observed=found.metadata.generation)
    kind = type(topology).KIND.name
    why = f"KAI Topology levels differ from {kind} levels: {_difference(topology, found)}"
    return TopologySync(in_sync=False, message=why, observed=found.metadata.generation)


def deleted(name: str, found: SchedulerObject) -> tuple[Intent, ...]:
    """Deletes the Topology explicitly: the garbage collector does it too, but only once it has seen that the
    owner is gone."""
    return (Delete(Target(TOPOLOGY.api_version, TOPOLOGY.name, name), uid=found.metadata.uid),)


def refused(keys: tuple[str, ...]) -> Iterator[str]:
    """Why KAI would reject these levels, found before they are written."""
    if not 1 <= len(keys) <= MAX_LEVELS:
        yield f"KAI requires 1 to {MAX_LEVELS} levels, not {len(keys)}"
    if _HOST in keys[:-1]:
        yield f"KAI requires {_HOST} to be the last level"
    yield from (
        f"KAI requires the prefix of {key} in lower case"
        for key in keys
        if "/" in key and (prefix := key.partition("/")[0]) != prefix.lower()
    )


def _recreate(topology: AnyTopology, wanted: Body, found: SchedulerObject) -> tuple[Intent, ...]:
    trial_name = topology.metadata.name[: _MAX_NAME - len(_DRY_RUN_SUFFIX)] + _DRY_RUN_SUFFIX
    trial = Create(
        Target(TOPOLOGY.api_version, TOPOLOGY.name, trial_name),
        {**wanted, "metadata": {**wanted["metadata"], "name": trial_name}},
        dry_run=True,
    )
    delete = Delete(_target(topology), uid=found.metadata.uid, after=(trial.id,))
    return trial, delete, Create(_target(topology), wanted, after=(delete.id,))


def _target(topology: AnyTopology) -> Target:
    return Target(TOPOLOGY.api_version, TOPOLOGY.name, topology.metadata.name)


def _controlled(metadata: ObjectMeta, topology: AnyTopology) -> bool:
    uid = topology.metadata.uid
    return any(owner.controller and owner.uid == uid for owner in metadata.owner_references)


def _difference(topology: AnyTopology, found: SchedulerObject) -> str:
    return f"expected [{', '.join(_keys(topology))}], found [{', '.join(_levels(found))}]"


def _keys(topology: AnyTopology) -> list[str]:
    return [level.key for level in topology.spec.levels]


def _levels(found: SchedulerObject) -> list[str]:
    return [level.get("nodeLabel", "") for level in found.spec.get("levels") or ()]
