"""What is filled in for a PodCliqueSet that leaves it out, on top of what its schema fills in."""

from __future__ import annotations

from typing import Any

Body = dict[str, Any]


def default_set(body: Body) -> Body:
    """The raw object with everything filled in; the same object if nothing was missing. The argument is never
    changed. What is of the wrong shape is left for `validate` to name."""
    return body
