"""Templates that users write and Kubernetes defines: kept as raw JSON, so no field is dropped or reordered.

What the product needs to know about them it reads through the slim views in `grove.api.types.pod`. The CRDs
embed the schema that the API server itself publishes for these types (`grove.api.crds.openapi`).
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
