"""Parses a DynamoGraphDeployment: its typed form, and the version-independent graph."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from grove.dynamo.api.graph_deployment import DynamoGraphDeployment
from grove.dynamo.decode import decoder, normalize
from grove.dynamo.graph import Graph


class ParsedGraph(Struct, frozen=True):
    """A decoded DynamoGraphDeployment and its normalised form."""

    deployment: DynamoGraphDeployment
    graph: Graph


def parse(body: Any) -> ParsedGraph:
    """Parse a graph. Raises ObjectFormatError with all format errors."""
    deployment = decoder.read(body)
    return ParsedGraph(deployment, normalize.graph(deployment))
