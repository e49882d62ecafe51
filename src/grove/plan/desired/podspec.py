"""Builds pod specs: what the user wrote, with what every pod gets. Unknown fields are kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Raw

from grove import timing
from grove.api.naming import annotations as keys
from grove.api.naming import labels, names, well_known
from grove.api.naming.well_known import Env
from grove.api.types.podcliqueset import PodCliqueSet
from grove.fabrics.provider import FabricDomainProvider
from grove.fabrics.requirements import DomainRequirement
from grove.plan.desired.expand import Clique
from grove.plan.desired.template_hash import spec_digest
from grove.plan.placement.assignment import NO_NODE_LABELS, NodeLabels

Body = dict[str, Any]
DomainClaims = tuple[tuple[FabricDomainProvider, str, DomainRequirement], ...]
"""What the claims of pods in fabric domains depend on: provider, name of the claim template, requirement."""

PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_POD_VARIABLES = frozenset(
    {Env.SET_NAME, Env.SET_INDEX, Env.CLIQUE_NAME, Env.HEADLESS_SERVICE, Env.POD_INDEX}
)
_GROUP_VARIABLES = frozenset({Env.GROUP_NAME, Env.GROUP_PODS, Env.GROUP_INDEX})


def clique_pod_spec(workload: PodCliqueSet, wanted: Clique) -> Body:
    """The pod spec of a clique: the template's, in a group with variables for the group replica, and with the
    claims by which its pods join fabric domains."""
    raw = bytes(wanted.template.spec.pod_spec)
    if wanted.fabric_domains:
        return _spec_with_domains(raw, _group_pods(workload, wanted), _domain_claims(wanted))
    return _decoded(raw) if wanted.group is None else _member_spec(raw, _group_pods(workload, wanted))


def same_spec(found: Raw, workload: PodCliqueSet, wanted: Clique) -> bool:
    """Whether a PodClique has the desired pod spec, in any form (see `desired.canonical`)."""
    digest = _spec_digest(
        bytes(wanted.template.spec.pod_spec), _group_pods(workload, wanted), _domain_claims(wanted)
    )
    return spec_digest(bytes(found)) == digest


def _group_pods(workload: PodCliqueSet, wanted: Clique) -> int:
    """How many pods one replica of the clique's group has, by the template; 0 outside of groups."""
    if wanted.group is None:
        return 0
    counts = {clique.name: clique.spec.replicas for clique in workload.spec.template.cliques}
    return sum(counts[name] for name in wanted.group.template.clique_names)


def _domain_claims(wanted: Clique) -> DomainClaims:
    return tuple((domain.provider, domain.template, domain.requirement) for domain in wanted.fabric_domains)


@lru_cache(maxsize=1024)
def _spec_digest(raw: bytes, group_pods: int, claims: DomainClaims) -> str:
    return spec_digest(msgspec.json.encode(_spec_with_domains(raw, group_pods, claims)))


@lru_cache(maxsize=1024)
def _spec_with_domains(raw: bytes, group_pods: int, claims: DomainClaims) -> Body:
    spec = _member_spec(raw, group_pods) if group_pods else _decoded(raw)
    for provider, template, requirement in claims:
        spec = provider.inject(spec, template, requirement.policy, requirement.by_claim)
    return spec


@lru_cache(maxsize=1024)
def _decoded(raw: bytes) -> Body:
    """Shared between plans: callers must copy what they change."""
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
    """The annotations of a PodClique and its pods: those of the template, except for the one for gangs."""
    return {key: value for key, value in wanted.template.annotations.items() if key != keys.TOPOLOGY_NAME}


def pod_spec(
    workload: PodCliqueSet,
    index: int,
    wanted: Clique,
    scheduler: str,
    gated: bool,
    node_labels: NodeLabels = NO_NODE_LABELS,
    priority_class: str = "",
) -> Body:
    """The common spec of all pods of a clique; each only adds its host name. The node labels of an assignment
    are added to the user's node selector and affinity. The PriorityClass of the set is that of pods that name
    none."""
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
    if priority_class and not spec.get("priorityClassName"):
        spec["priorityClassName"] = priority_class
    if node_labels.required:
        spec["nodeSelector"] = {**node_labels.required, **(spec.get("nodeSelector") or {})}
    if node_labels.present:
        spec["affinity"] = require_labels(spec.get("affinity"), node_labels.present)
    if node_labels.preferred:
        spec["affinity"] = prefer_nodes(spec.get("affinity"), node_labels.preferred)
    if gated:
        others = [
            gate for gate in spec.get("schedulingGates") or [] if gate.get("name") != well_known.GANG_GATE
        ]
        spec["schedulingGates"] = [{"name": well_known.GANG_GATE}, *others]
    return spec


def prefer_nodes(affinity: Body | None, labels: Mapping[str, str]) -> Body:
    """The affinity of a user with a preference for nodes with these labels."""
    affinity = affinity or {}
    nodes = affinity.get("nodeAffinity") or {}
    terms = [
        {"weight": timing.PREFERENCE_WEIGHT, "preference": {"matchExpressions": [_is(key, value)]}}
        for key, value in labels.items()
    ]
    preferred = [*(nodes.get(PREFERRED) or []), *terms]
    return {**affinity, "nodeAffinity": {**nodes, PREFERRED: preferred}}


def require_labels(affinity: Body | None, keys: Iterable[str]) -> Body:
    """The affinity of a user, for nodes with these labels only."""
    affinity = affinity or {}
    nodes = affinity.get("nodeAffinity") or {}
    present = [{"key": key, "operator": "Exists"} for key in keys]
    terms = [
        # A term without any expression matches no node: it stays as it is.
        {**term, "matchExpressions": [*(term.get("matchExpressions") or []), *present]} if term else term
        for term in (nodes.get(REQUIRED) or {}).get("nodeSelectorTerms") or ()
    ] or [{"matchExpressions": present}]
    return {**affinity, "nodeAffinity": {**nodes, REQUIRED: {"nodeSelectorTerms": terms}}}


def _is(key: str, value: str) -> Body:
    return {"key": key, "operator": "In", "values": [value]}


def _with_variables(spec: Body, variables: list[Body], reserved: frozenset[Env]) -> Body:
    """The spec with these variables first in every container; user variables with these names are dropped."""
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
