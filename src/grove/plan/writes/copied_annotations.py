"""Which changes of annotations wait for another write.

PodGangs, and the objects of some schedulers, have copies of the annotations of their set. Tools change the
annotations of a set often, and most have no effect on a gang. So a changed copy does not cause a write of
each gang: it is in the next write that the gang needs anyway.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from grove.api.naming import labels


def only_copies_change(
    patch: Mapping[str, Any], of_set: Mapping[str, str], prompt_prefixes: tuple[str, ...]
) -> bool:
    """Whether a patch changes annotations only, all of them copies from a set with the annotations `of_set`,
    or copies that it no longer has. Keys of the operator itself, and those that begin with one of
    `prompt_prefixes`, have an effect and never wait."""
    metadata = patch.get("metadata") or {}
    if len(patch) != 1 or metadata.keys() != {"annotations"}:
        return False
    prompt = (labels.GROVE_PREFIX, *prompt_prefixes)
    return all(
        value in (None, of_set.get(key)) and not key.startswith(prompt)
        for key, value in metadata["annotations"].items()
    )
