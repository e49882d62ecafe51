"""Templates that users write and Kubernetes defines: kept as raw JSON, so no field is dropped or reordered.

The fields that the operator reads are decoded by the types in `grove.api.types.pod`. The CRDs embed the
schema that the API server publishes for these types (`grove.api.crds.openapi`).
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Raw

from grove.api.wire import KubernetesSchema

PodSpec = Annotated[Raw, KubernetesSchema("io.k8s.api.core.v1.PodSpec")]
MetricSpec = Annotated[Raw, KubernetesSchema("io.k8s.api.autoscaling.v2.MetricSpec")]
ResourceClaimTemplateSpec = Annotated[
    Raw, KubernetesSchema("io.k8s.api.resource.v1.ResourceClaimTemplateSpec")
]
