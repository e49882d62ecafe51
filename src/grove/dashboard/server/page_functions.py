"""The functions that make the data of single pages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Struct

from grove.dashboard.pages.explanation import explanation_page
from grove.dashboard.pages.node import node_page
from grove.dashboard.pages.object_yaml import object_yaml
from grove.dashboard.pages.search import search_hits
from grove.dashboard.pages.workload import workload_page

Result = Any | Awaitable[Any]
PageFunction = Callable[..., Result]
"""Called with the board, the rights of the viewer and the parameters of the request; raises PageError. Its
result, or what it awaits, is sent."""


class Pages(Struct, frozen=True):
    """One function for each page."""

    workload: PageFunction
    explanation: PageFunction
    node: PageFunction
    search: PageFunction
    object_yaml: PageFunction


def cluster_pages() -> Pages:
    """The pages of a cluster."""
    return Pages(workload_page, explanation_page, node_page, search_hits, object_yaml)
