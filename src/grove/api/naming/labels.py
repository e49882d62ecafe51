"""Label keys, and the labels of each kind of object. Labels are the identity of an object.

The functions return the labels that the operator sets. They take precedence over labels from templates.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

MANAGED_BY = "app.kubernetes.io/managed-by"
PART_OF = "app.kubernetes.io/part-of"
NAME = "app.kubernetes.io/name"
COMPONENT = "app.kubernetes.io/component"

SET_REPLICA = "grove.io/podcliqueset-replica-index"
GROUP = "grove.io/podcliquescalinggroup"
GROUP_REPLICA = "grove.io/podcliquescalinggroup-replica-index"
CLIQUE = "grove.io/podclique"
"""The PodClique object that a pod belongs to."""
CLIQUE_TEMPLATE = "grove.io/clique"
"""The clique's name in the set, which would otherwise have to be parsed from the name of the object."""
POD_INDEX = "grove.io/podclique-pod-index"
GANG = "grove.io/podgang"
BASE_GANG = "grove.io/base-podgang"
"""The gang that must be scheduled first: on cliques and pods of scaled gangs only."""
TEMPLATE_HASH = "grove.io/pod-template-hash"
SCHEDULER = "grove.io/scheduler-name"
COMPUTE_DOMAIN = "grove.io/computedomain"
COMPUTE_DOMAIN_MODE = "grove.io/computedomain-mode"
MNNVL_GROUP = "grove.io/mnnvl-group"

CLAIM_SCOPE_LABELS = frozenset({SET_REPLICA, GROUP, CLIQUE})
"""A shared claim with none of these labels belongs to all replicas of its set."""
SELECTORS = (MANAGED_BY, PART_OF, SET_REPLICA, GROUP, CLIQUE)
"""The labels by which the informer caches select and index objects."""
OPERATOR = "grove-operator"
MANAGED_BY_OPERATOR = {MANAGED_BY: OPERATOR}
"""Selects all objects that the operator creates."""
GROVE_PREFIX = "grove.io/"
"""Prefix of keys that are not copied from a set to its gangs."""

Labels = dict[str, str]


class ComponentLabel(StrEnum):
    """The component of a set that an object is, as the value of `app.kubernetes.io/component`."""

    HEADLESS_SERVICE = "pcs-headless-service"
    ROLE = "pod-role"
    ROLE_BINDING = "pod-role-binding"
    SERVICE_ACCOUNT = "pod-service-account"
    TOKEN_SECRET = "pod-sa-token-secret"  # noqa: S105 - not a password
    GROUP = "pcs-podcliquescalinggroup"
    AUTOSCALER = "pcs-hpa"
    GANG = "podgang"
    CLIQUE = "pcs-podclique"
    MEMBER_CLIQUE = "pcsg-podclique"
    RESOURCE_CLAIM = "resource-claim"
    COMPUTE_DOMAIN = "pcs-computedomain"


def managed(set_name: str) -> Labels:
    """The labels of every object that the operator creates for a set."""
    return {MANAGED_BY: OPERATOR, PART_OF: set_name}


def named(set_name: str, name: str, component: ComponentLabel) -> Labels:
    """`managed`, with name and component. Label values cannot contain the colons of a Role's name."""
    return managed(set_name) | {NAME: name.replace(":", "-"), COMPONENT: component.value}


def for_replica(set_name: str, replica: int, name: str, component: ComponentLabel) -> Labels:
    """Objects of one replica of a set: Service, groups, autoscalers, ComputeDomain."""
    return named(set_name, name, component) | {SET_REPLICA: str(replica)}


def for_gang(set_name: str, replica: int, scheduler: str) -> Labels:
    """A PodGang."""
    own = {COMPONENT: ComponentLabel.GANG.value, SET_REPLICA: str(replica), SCHEDULER: scheduler}
    return managed(set_name) | own


def for_clique(
    set_name: str, replica: int, name: str, template: str, gang: str, template_hash: str
) -> Labels:
    """A PodClique outside of scaling groups."""
    return for_replica(set_name, replica, name, ComponentLabel.CLIQUE) | {
        CLIQUE_TEMPLATE: template,
        GANG: gang,
        TEMPLATE_HASH: template_hash,
    }


def for_member_clique(
    clique: Mapping[str, str], group: str, group_replica: int, base_gang: str = ""
) -> Labels:
    """A PodClique of a scaling group: the labels of `for_clique`, the group and its replica. `base_gang` is
    set for group replicas that are a gang of their own."""
    member = {
        COMPONENT: ComponentLabel.MEMBER_CLIQUE.value,
        GROUP: group,
        GROUP_REPLICA: str(group_replica),
    }
    return {**clique, **member} | ({BASE_GANG: base_gang} if base_gang else {})


def for_pod(clique: Mapping[str, str], clique_name: str, index: int) -> Labels:
    """A pod: the labels of its PodClique, the PodClique's name and the pod's index."""
    return {**clique, CLIQUE: clique_name, POD_INDEX: str(index)}


def for_claim(set_name: str, place: Mapping[str, str]) -> Labels:
    """A shared ResourceClaim; `place` has the labels of the part of the set, and its replica, that use it."""
    return managed(set_name) | {COMPONENT: ComponentLabel.RESOURCE_CLAIM.value} | dict(place)


def pods_of_set(set_name: str) -> Labels:
    """The labels that select the pods of a set."""
    return managed(set_name)


def pods_of_replica(set_name: str, replica: int) -> Labels:
    """The labels that select the pods of one replica."""
    return managed(set_name) | {SET_REPLICA: str(replica)}


def pods_of_clique(set_name: str, clique_name: str) -> Labels:
    """The labels that select the pods of a PodClique."""
    return managed(set_name) | {CLIQUE: clique_name}


def pods_of_group(set_name: str, group_name: str) -> Labels:
    """The labels that select the pods of a PodCliqueScalingGroup."""
    return managed(set_name) | {GROUP: group_name}


def selector(labels: Mapping[str, str]) -> str:
    """A label selector as a string, for the API and autoscalers: `key=value`, sorted, separated by commas."""
    return ",".join(f"{key}={labels[key]}" for key in sorted(labels))
