"""The `grove.io/` annotations: keys, values, and on which objects they are."""

from __future__ import annotations

from collections.abc import Mapping

DISABLE_PROTECTION = "grove.io/disable-managed-resource-protection"
"""On a set, with "true": other users may change the objects that the operator manages for it."""
TOPOLOGY_NAME = "grove.io/topology-name"
"""On a gang: the topology that its constraints refer to. Never on cliques and pods."""
AUTO_MNNVL = "grove.io/auto-mnnvl"
"""On a set: whether each replica gets a ComputeDomain automatically. Immutable."""
AUTO_MNNVL_ENABLED = "enabled"
AUTO_MNNVL_DISABLED = "disabled"
MNNVL_GROUP = "grove.io/mnnvl-group"
"""On a set, group or clique: which ComputeDomain of the replica it is in. The clique's value takes precedence
over the group's, and the group's over the set's."""
MNNVL_GROUP_NONE = "none"
MNNVL_CLAIMS = "grove.io/auto-mnnvl-claims"
"""On a set, as `clique/claim`, separated by commas: the claims of its pods that are for GPUs. Immutable."""
PACK_DOMAINS = "grove.io/pack-domains"
"""On a set, `off`, `preferred` or `required`: whether the pods of each of its fabric domains are placed in
one partition of the fabric. It may change, and counts for pods that are placed later. Without it the setting
`network.packDomains` of the operator counts."""
ALLOW_DELETE = "grove.io/allow-delete"
"""On a ComputeDomain, with "true": it may be deleted although `network.protectComputeDomains` is set."""
RECREATE = "grove.io/recreate"
"""On a ComputeDomain that is being deleted, with "true": its pods are restarted and it is created again."""
TRUE = "true"
TERMINATIONS = "grove.io/terminations"
"""On a gang: when its units were last restarted by gang termination, and how often in a row. Without it the
count is 0."""
PLACEMENT = "grove.io/placement"
"""On a gang: the node selector by which the pods of each clique are pinned to the domains of the gang."""
NOMINATION = "grove.io/nomination"
"""On a gated pod: the scheduler process that its nomination to a node was written for, or when it was last
written. It changes when the scheduler may have lost the nomination."""
FORCE_DELETE_AFTER = "grove.io/force-delete-after"
"""On a set, a duration such as "5m": pods whose grace period ended so long ago are force-deleted."""
RESTART_PREFIX = "grove.io/restart-"
"""On a set, followed by a unit, with any value: a new value restarts the unit by a rollout. The units are in
`plan.desired.restarts`."""
RESTART_ALL = "all"
"""The unit that is the whole set, or what follows in all replicas."""
RESTARTS = "grove.io/restarts"
"""On a pod: tokens of the restarts that it was created after."""
PRIOR_FAILURES = "grove.io/failures"
"""On a pod: how many pods of the same index have ended in a row before it."""
TOKEN_SERVICE_ACCOUNT_UID = "grove.io/token-of"  # noqa: S105 - not a password
"""On the RoleBinding of init containers: the UID of the ServiceAccount whose token Secret was created."""
SHARED_WITH_NAMESPACES = "grove.io/shared-with-namespaces"
"""On a ResourceClaimTemplate, namespaces separated by commas, or "*" for all: PodCliqueSets of these
namespaces may share claims created from it. Without it only those of its own namespace may."""


def shared_with(carried: Mapping[str, str], namespace: str) -> bool:
    """Whether a template with these annotations may be used by the sets of another namespace."""
    named = {word.strip() for word in carried.get(SHARED_WITH_NAMESPACES, "").split(",")} - {""}
    return "*" in named or namespace in named
