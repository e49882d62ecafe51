"""The spec of a pod: what the user wrote, with what every pod gets. Fields we do not know pass through."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Raw

from grove.api import annotations as keys
from grove.api import labels, marks, names
from grove.api.marks import Env
from grove.api.sets import PodCliqueSet
from grove.fabrics.places import Seat
from grove.plan.expand import Clique
from grove.plan.hashes import spec_digest
from grove.plan.ledger import Member

Body = dict[str, Any]

_POD_VARIABLES = frozenset(
    {Env.SET_NAME, Env.SET_INDEX, Env.CLIQUE_NAME, Env.HEADLESS_SERVICE, Env.POD_INDEX}
)
_GROUP_VARIABLES = frozenset({Env.GROUP_NAME, Env.GROUP_PODS, Env.GROUP_INDEX})


def clique_pod_spec(workload: PodCliqueSet, wanted: Clique) -> Body:
    """The pod spec of a clique: the template's, in a group the variables that tell which one, and the claims
    by which its pods join fabric domains."""
    raw = bytes(wanted.template.spec.pod_spec)
    if wanted.seats:
        return _seated_spec(raw, _group_pods(workload, wanted), wanted.seats)
    return _decoded(raw) if wanted.group is None else _member_spec(raw, _group_pods(workload, wanted))


def same_spec(found: Raw, workload: PodCliqueSet, wanted: Clique) -> bool:
    """Whether a PodClique has the pod spec that it should have, however it is spelled."""
    digest = _digest_of(bytes(wanted.template.spec.pod_spec), _group_pods(workload, wanted), wanted.seats)
    return spec_digest(bytes(found)) == digest


def _group_pods(workload: PodCliqueSet, wanted: Clique) -> int:
    """How many pods one replica of the clique's group has, by the template; 0 outside of groups."""
    if wanted.group is None:
        return 0
    counts = {clique.name: clique.spec.replicas for clique in workload.spec.template.cliques}
    return sum(counts[name] for name in wanted.group.template.clique_names)


@lru_cache(maxsize=1024)
def _digest_of(raw: bytes, group_pods: int, seats: tuple[Seat, ...]) -> str:
    return spec_digest(msgspec.json.encode(_seated_spec(raw, group_pods, seats)))


@lru_cache(maxsize=1024)
def _seated_spec(raw: bytes, group_pods: int, seats: tuple[Seat, ...]) -> Body:
    spec = _member_spec(raw, group_pods) if group_pods else _decoded(raw)
    for seat in seats:
        spec = seat.provider.inject(spec, seat.template, seat.policy, seat.demand.by_claim)
    return spec


@lru_cache(maxsize=1024)
def _decoded(raw: bytes) -> Body:
    """Shared between plans: whoever changes something copies what leads to it."""
    spec: Body = msgspec.json.decode(raw)
    return spec


@lru_cache(maxsize=1024)
def _member_spec(raw: bytes, group_pods: int) -> Body:
    variables = [
        _from_label(Env.GROUP_NAME, labels.GROUP),
        {"name": Env.GROUP_PODS.value, "value": str(group_pods)},
        _from_label(Env.GROUP_INDEX, labels.GROUP_REPLICA),
    ]
    return _with_variables(_decoded(raw), variables, _GROUP_VARIABLES)


def clique_annotations(wanted: Clique) -> dict[str, str]:
    """What a PodClique and its pods are annotated with: all that the template says but what is for gangs."""
    return {key: value for key, value in wanted.template.annotations.items() if key != keys.TOPOLOGY_NAME}


def pod_spec(
    workload: PodCliqueSet,
    index: int,
    wanted: Clique,
    scheduler: str,
    gated: bool,
    place: Mapping[str, str] | None = None,
) -> Body:
    """What all pods of a clique have in common; each only adds its host name. A place is a demand on top of
    what the user demands of nodes."""
    set_name, namespace = workload.metadata.name, workload.metadata.namespace
    variables = [
        {"name": Env.SET_NAME.value, "value": set_name},
        {"name": Env.SET_INDEX.value, "value": str(index)},
        {"name": Env.CLIQUE_NAME.value, "value": wanted.name},
        {"name": Env.HEADLESS_SERVICE.value, "value": names.service_host(set_name, index, namespace)},
        _from_label(Env.POD_INDEX, labels.POD_INDEX),
    ]
    spec = _with_variables(clique_pod_spec(workload, wanted), variables, _POD_VARIABLES)
    spec["subdomain"] = names.service(set_name, index)
    spec["schedulerName"] = scheduler
    if place:
        spec["nodeSelector"] = {**(spec.get("nodeSelector") or {}), **place}
    if gated:
        others = [gate for gate in spec.get("schedulingGates") or [] if gate.get("name") != marks.GANG_GATE]
        spec["schedulingGates"] = [{"name": marks.GANG_GATE}, *others]
    return spec


def pod(
    workload: PodCliqueSet,
    wanted: Clique,
    member: Member,
    spec: Body,
    carried: labels.Labels,
    owners: list[Body],
) -> Body:
    """One pod of a clique. `carried` is what its PodClique carries."""
    notes = clique_annotations(wanted)
    if member.failures:
        notes[keys.FAILURES] = str(member.failures)
    metadata: Body = {
        "name": member.name,
        "namespace": workload.metadata.namespace,
        "labels": labels.for_pod(carried, wanted.name, member.index),
        "ownerReferences": owners,
    }
    if notes:
        metadata["annotations"] = notes
    hostname = names.pod_host(wanted.name, member.index)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {**spec, "hostname": hostname}}


def _with_variables(spec: Body, variables: list[Body], reserved: frozenset[Env]) -> Body:
    """The spec with these variables first in every container, whoever else tried to set them."""
    changed = dict(spec)
    for kind in ("containers", "initContainers"):
        if spec.get(kind):
            changed[kind] = [_with_env(container, variables, reserved) for container in spec[kind]]
    return changed


def _with_env(container: Body, variables: list[Body], reserved: frozenset[Env]) -> Body:
    own = [variable for variable in container.get("env") or [] if variable.get("name") not in reserved]
    return {**container, "env": [*variables, *own]}


def _from_label(name: Env, label: str) -> Body:
    return {"name": name.value, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{label}']"}}}
