"""Whether this operator serves DynamoGraphDeployments, and under which circumstances."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from grove.api.configuration.types import OperatorConfiguration
from grove.dynamo.api.graph_deployment import DynamoGraphDeployment
from grove.dynamo.context import GraphContext
from grove.fabrics.registry import Providers
from grove.kube.client.client import Client
from grove.kube.client.resource import CUSTOM_RESOURCE_DEFINITIONS
from grove.kube.errors import NotFound
from grove.rules.model import Facts
from grove.schedulers.registry import SchedulerBackends


class DynamoSettings(Struct, frozen=True):
    """The layer as the operator's configuration wants it."""

    context: GraphContext = GraphContext()
    facts: Facts = Facts()

    @classmethod
    def of(
        cls,
        config: OperatorConfiguration,
        in_use: SchedulerBackends | None = None,
        fabrics: Providers | None = None,
    ) -> DynamoSettings | None:
        """None if it is switched off."""
        if not config.dynamo.enabled:
            return None
        return cls(GraphContext.of(config), Facts.of(config, in_use=in_use, fabrics=fabrics))


async def dynamo_operator_conflict(client: Client) -> str:
    """Why the layer must not act: somebody else serves these kinds. Empty if nobody does."""
    name = DynamoGraphDeployment.KIND.crd_name
    try:
        found: Any = await client.get(CUSTOM_RESOURCE_DEFINITIONS, name, as_type=dict)
    except NotFound:
        return ""
    if found.get("spec", {}).get("conversion", {}).get("strategy") != "Webhook":
        return ""
    return (
        f"dynamo.enabled: CustomResourceDefinition {name} has a conversion webhook, so Dynamo's own operator "
        "serves it: set dynamo.enabled to false, or remove that operator and its definition"
    )
