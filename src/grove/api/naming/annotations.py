"""Annotations of ours, and what belongs to them."""

from __future__ import annotations

from collections.abc import Mapping

DISABLE_PROTECTION = "grove.io/disable-managed-resource-protection"
"""On a set, with "true": others may change what the operator manages for it."""
RECONCILE_TRIGGER = "grove.io/reconcile-trigger"
"""On a set: any change looks at it anew."""
TOPOLOGY_NAME = "grove.io/topology-name"
"""On a gang: the topology that its constraints mean. Never on cliques and pods."""
AUTO_MNNVL = "grove.io/auto-mnnvl"
"""On a set: whether each replica gets a ComputeDomain by itself. Immutable."""
AUTO_MNNVL_ENABLED = "enabled"
AUTO_MNNVL_DISABLED = "disabled"
MNNVL_GROUP = "grove.io/mnnvl-group"
"""On a set, group or clique: which ComputeDomain of the replica it is in; the nearest layer counts."""
MNNVL_GROUP_NONE = "none"
MNNVL_CLAIMS = "grove.io/auto-mnnvl-claims"
"""On a set, as `clique/claim`, separated by commas: claims of its pods that are for GPUs. Immutable."""
ALLOW_DELETE = "grove.io/allow-delete"
"""On a ComputeDomain, with "true": it may be deleted by hand although it is protected."""
TRUE = "true"
TERMINATIONS = "grove.io/terminations"
"""On a gang: when its units were last started anew, and how often in a row. Without it the count is 0."""
FORCE_DELETE_AFTER = "grove.io/force-delete-after"
"""On a set, a duration such as "5m": pods that should have been gone so long ago are deleted by force."""
PRIOR_FAILURES = "grove.io/failures"
"""On a pod: how many pods in a row have ended in its place before it."""
TOKEN_SERVICE_ACCOUNT_UID = "grove.io/token-of"  # noqa: S105 - not a password
"""On the RoleBinding of init containers: the UID of the ServiceAccount whose token Secret was made."""
SHARED_WITH_NAMESPACES = "grove.io/shared-with-namespaces"
"""On a ResourceClaimTemplate, namespaces separated by commas, or "*" for all: PodCliqueSets of these
namespaces may share claims made from it. Without it only those of its own namespace may."""


def shared_with(carried: Mapping[str, str], namespace: str) -> bool:
    """Whether the annotations of a template let the sets of another namespace use it."""
    named = {word.strip() for word in carried.get(SHARED_WITH_NAMESPACES, "").split(",")} - {""}
    return "*" in named or namespace in named
