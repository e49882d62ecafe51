"""Validation of `spec.restart`."""

from __future__ import annotations

from collections.abc import Iterator

from grove.api.field_errors import FieldError, forbidden, invalid, required, unsupported
from grove.dynamo.api.graph_deployment import PARALLEL, SEQUENTIAL
from grove.dynamo.graph import Graph

_PATH = "spec.restart"


def on_create(graph: Graph) -> Iterator[FieldError]:
    """Rejects a restart of a new graph."""
    if graph.restart is not None:
        yield forbidden(_PATH, "a new graph starts anyway: set it after creation")


def errors(graph: Graph) -> Iterator[FieldError]:
    """Errors of `spec.restart`."""
    restart = graph.restart
    if restart is None:
        return
    if not restart.id:
        yield required(f"{_PATH}.id")
    if restart.strategy is None:
        return
    kind, order = restart.strategy.type, restart.strategy.order
    if kind not in ("", PARALLEL, SEQUENTIAL):
        yield unsupported(f"{_PATH}.strategy.type", kind, (SEQUENTIAL, PARALLEL))
    if order and kind == PARALLEL:
        yield forbidden(f"{_PATH}.strategy.order", "must be empty with type Parallel")
    elif order and sorted(order) != sorted(each.name for each in graph.components):
        yield invalid(f"{_PATH}.strategy.order", list(order), "must name every component once")
