"""Whether this operator serves DynamoGraphDeployments, with which settings, and whether Dynamo's own operator
conflicts with it."""

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
from grove.webhooks.conversion.registration import is_foreign


class DynamoSettings(Struct, frozen=True):
    """The settings for DynamoGraphDeployments from the operator's configuration."""

    context: GraphContext = GraphContext()
    facts: Facts = Facts()

    @classmethod
    def of(
        cls,
        config: OperatorConfiguration,
        in_use: SchedulerBackends | None = None,
        fabrics: Providers | None = None,
    ) -> DynamoSettings | None:
        """The settings; None if `dynamo.enabled` is false."""
        if not config.dynamo.enabled:
            return None
        return cls(GraphContext.of(config), Facts.of(config, in_use=in_use, fabrics=fabrics))


async def dynamo_operator_conflict(client: Client) -> str:
    """Why DynamoGraphDeployments must not be served: another operator does. Empty if none does."""
    name = DynamoGraphDeployment.KIND.crd_name
    try:
        found: Any = await client.get(CUSTOM_RESOURCE_DEFINITIONS, name, as_type=dict)
    except NotFound:
        return ""
    if not is_foreign(found.get("spec", {}).get("conversion", {})):
        return ""
    return (
        f"dynamo.enabled: CustomResourceDefinition {name} has a conversion webhook that is not ours, so "
        "Dynamo's own operator serves it: set dynamo.enabled to false, or remove that operator and its "
        "definition"
    )
