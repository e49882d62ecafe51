"""The patch that repairs the object of a scheduler."""

from __future__ import annotations

from collections.abc import Mapping

from grove.api.intents import Patch, Target
from grove.plan.writes.copied_annotations import only_copies_change
from grove.plan.writes.diff import merge_patch
from grove.schedulers.backend import Body, SchedulerObject


def repair_patch(
    wanted: Body, found: SchedulerObject, of_set: Mapping[str, str], prompt_prefixes: tuple[str, ...]
) -> Patch | None:
    """The patch to the wanted labels, annotations and spec; None if there is nothing to write now. Labels and
    annotations of others stay. For the last two parameters see `copied_annotations`."""
    metadata: Body = {}
    for field, known in (("labels", found.metadata.labels), ("annotations", found.metadata.annotations)):
        values = wanted["metadata"].get(field) or {}
        if changed := {key: value for key, value in values.items() if known.get(key) != value}:
            metadata[field] = changed
    parts = {"metadata": metadata, "spec": merge_patch(found.spec, wanted["spec"])}
    patch = {name: part for name, part in parts.items() if part}
    if not patch or only_copies_change(patch, of_set, prompt_prefixes):
        return None
    target = Target(wanted["apiVersion"], wanted["kind"], found.metadata.name, found.metadata.namespace)
    return Patch(target, {**patch, "metadata": {"uid": found.metadata.uid, **metadata}})
