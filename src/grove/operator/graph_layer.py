"""Whether this operator serves DynamoGraphDeployments, and under which circumstances."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from grove.api.config import OperatorConfiguration
from grove.dynamo.surroundings import Surroundings
from grove.dynamo.types import DynamoGraphDeployment
from grove.fabrics.registry import Providers
from grove.kube.client import Client
from grove.kube.errors import NotFound
from grove.kube.resource import CUSTOM_RESOURCE_DEFINITIONS
from grove.rules.model import Facts
from grove.schedulers.registry import Backends


class Layer(Struct, frozen=True):
    """The layer as the operator's configuration wants it."""

    surroundings: Surroundings = Surroundings()
    facts: Facts = Facts()

    @classmethod
    def of(
        cls,
        config: OperatorConfiguration,
        in_use: Backends | None = None,
        fabrics: Providers | None = None,
    ) -> Layer | None:
        """None if it is switched off."""
        if not config.dynamo.enabled:
            return None
        return cls(Surroundings.of(config), Facts.of(config, in_use=in_use, fabrics=fabrics))


async def foreign(client: Client) -> str:
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
