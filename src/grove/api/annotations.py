"""Annotations of ours, and what belongs to them."""

from __future__ import annotations

UNPROTECTED = "grove.io/disable-managed-resource-protection"
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
ALLOW_DELETE = "grove.io/allow-delete"
"""On a ComputeDomain, with "true": it may be deleted by hand although it is protected."""
TRUE = "true"
FAILURES = "grove.io/failures"
"""On a pod: how many pods in a row have ended in its place before it."""
TOKEN_OF = "grove.io/token-of"  # noqa: S105 - not a password
"""On the RoleBinding of init containers: the UID of the ServiceAccount whose token Secret was made."""
