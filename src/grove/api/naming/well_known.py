"""Fixed names of the API: finalizers, scheduling gates, claims, containers, volumes, environment."""

from __future__ import annotations

from enum import StrEnum

SET_FINALIZER = "grove.io/podcliqueset.grove.io"
COMPUTE_DOMAIN_FINALIZER = "grove.io/computedomain-finalizer"
POD_GROUP_FINALIZER = "scheduling.k8s.io/podgroup-protection"
"""With it Kubernetes keeps its PodGroups while pods name them."""
LEGACY_FINALIZERS = frozenset({"grove.io/podclique.grove.io", "grove.io/podcliquescalinggroup.grove.io"})
"""Finalizers that upstream sets on cliques and groups. Nothing depends on them: the operator removes them."""

OPERATOR_LEASE = "grove-operator-leader-election"
"""The name of the operator's Lease, unless it is configured."""

HOSTNAME = "kubernetes.io/hostname"
"""The label that names a node."""
GANG_GATE = "grove.io/podgang-pending-creation"
"""The scheduling gate of a pod that must not be scheduled yet."""
MNNVL_CLAIM = "mnnvl-claim"
"""The reserved name of the claim through which a pod joins a ComputeDomain."""

INIT_CONTAINER = "grove-initc"
TOKEN_VOLUME = "sa-token-secret-vol"  # noqa: S105 - a volume's name
TOKEN_MOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105 - a path
POD_INFO_VOLUME = "pod-info-vol"
POD_INFO_MOUNT = "/var/grove/pod-info"
POD_INFO_NAMESPACE = "namespace"
POD_INFO_GANG = "podgangname"


class Env(StrEnum):
    """Environment variables of the pods' containers, in the order in which they are set."""

    SET_NAME = "GROVE_PCS_NAME"
    SET_INDEX = "GROVE_PCS_INDEX"
    CLIQUE_NAME = "GROVE_PCLQ_NAME"
    HEADLESS_SERVICE = "GROVE_HEADLESS_SERVICE"
    POD_INDEX = "GROVE_PCLQ_POD_INDEX"
    GROUP_NAME = "GROVE_PCSG_NAME"
    GROUP_PODS = "GROVE_PCSG_TEMPLATE_NUM_PODS"
    GROUP_INDEX = "GROVE_PCSG_INDEX"


class OperatorEnv(StrEnum):
    """Environment variables of the operator."""

    SERVICE_ACCOUNT = "GROVE_OPERATOR_SERVICE_ACCOUNT_NAME"
    INIT_IMAGE = "GROVE_INIT_CONTAINER_IMAGE"
