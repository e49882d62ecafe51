"""Labels, annotations and resource names of other projects that the operator reads or writes: of schedulers,
device vendors and Kubernetes."""

from __future__ import annotations

KAI_QUEUE = "kai.scheduler/queue"
KAI_SUBGROUP = "kai.scheduler/subgroup-name"
KAI_SKIP_PODGROUPER = "kai.scheduler/skip-podgrouper"
KAI_POD_GROUP = "pod-group-name"
KAI_PREFIXES = ("kai.scheduler/", "scheduling.run.ai/", "run.ai/")

VOLCANO_QUEUE = "scheduling.grove.io/volcano-queue"
VOLCANO_POD_GROUP = "scheduling.volcano.sh/group-name"
VOLCANO_POD_GROUP_LEGACY = "scheduling.k8s.io/group-name"
VOLCANO_PREFIXES = ("scheduling.grove.io/", "scheduling.volcano.sh/", "scheduling.k8s.io/", "volcano.sh/")

DYNAMO_GROUP, DYNAMO_KIND = "nvidia.com", "DynamoGraphDeployment"
"""The kind from which Dynamo renders PodCliqueSets."""

NVIDIA_GPU = "nvidia.com/gpu"
NVIDIA_COMPUTE_PREFIX = "nvidia.com/compute"
"""The beginning of the three annotations that follow."""
NVIDIA_COMPUTE_DOMAIN = "nvidia.com/computedomain"
"""On a clique: the name of the ComputeDomain that its pods join."""
NVIDIA_COMPUTE_DOMAIN_SCOPE = "nvidia.com/computedomain-scope"
NVIDIA_ALLOCATION_MODE = "nvidia.com/computedomain-allocation-mode"
NVIDIA_DRIVER_COMPUTE_DOMAIN = "resource.nvidia.com/computeDomain"
"""The driver's finalizer on ComputeDomains, and its label on the nodes that are in one."""
NVIDIA_GPU_CLIQUE = "nvidia.com/gpu.clique"
"""On a node: the NVLink partition that its GPUs belong to."""

SERVICE_ACCOUNT_NAME = "kubernetes.io/service-account.name"
SERVICE_ACCOUNT_TOKEN = "kubernetes.io/service-account-token"  # noqa: S105 - a Secret's type
