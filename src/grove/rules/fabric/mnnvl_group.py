"""Validation of the annotation `grove.io/mnnvl-group` on a set, its cliques and its scaling groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from grove.api.field_errors import FieldError, forbidden, invalid
from grove.api.naming import annotations as keys
from grove.rules import syntax
from grove.rules.decode import Workload
from grove.rules.model import Facts

_KEY = keys.MNNVL_GROUP
_INDEX = len("-9999-")


def on_create(workload: Workload, facts: Facts) -> Iterator[FieldError]:
    """Errors of the annotation: it must be `none` or a DNS label, and a label requires automatic MNNVL."""
    for path, _, carried in _places(workload):
        if (value := carried.get(_KEY)) is None or value == keys.MNNVL_GROUP_NONE:
            continue
        if not value:
            yield invalid(path, value, f'must be "{keys.MNNVL_GROUP_NONE}" or the name of a group')
            continue
        yield from (invalid(path, value, wrong) for wrong in syntax.label(value))
        longest = syntax.MAX_LABEL - len(workload.metadata.effective_name) - _INDEX
        if longest < len(value) <= syntax.MAX_LABEL:
            why = f"must be no more than {longest} characters: the name of its domain also has the set's name"
            yield invalid(path, value, why)
        if not facts.network.auto_mnnvl_enabled:
            yield invalid(
                path,
                value,
                "MNNVL is not enabled in the operator's configuration: set network.autoMNNVLEnabled, or use "
                f'"{keys.MNNVL_GROUP_NONE}"',
            )


def on_update(old: Workload, new: Workload) -> Iterator[FieldError]:
    """Errors if the annotation changed. Cliques and groups are matched by name."""
    before = {part: carried for _, part, carried in _places(old)}
    for path, part, carried in _places(new):
        if (known := before.get(part)) is None:
            continue
        was, is_ = known.get(_KEY), carried.get(_KEY)
        if was is None and is_ is not None:
            yield forbidden(path, f"{_KEY} cannot be added after creation")
        elif was is not None and is_ is None:
            yield forbidden(path, f"{_KEY} cannot be removed after creation")
        elif was != is_:
            yield invalid(path, is_, f'{_KEY} is immutable: it cannot be changed from "{was}" to "{is_}"')


def _places(workload: Workload) -> Iterator[tuple[str, tuple[str, str], Mapping[str, str]]]:
    """Where the annotation may be set: its path, the kind and name of the part, and all its annotations."""
    yield f"metadata.annotations.{_KEY}", ("", ""), workload.metadata.annotations
    for index, clique in enumerate(workload.template.cliques):
        path = f"spec.template.cliques[{index}].annotations.{_KEY}"
        yield path, ("clique", clique.name), clique.annotations
    for index, group in enumerate(workload.template.pod_clique_scaling_groups):
        path = f"spec.template.podCliqueScalingGroups[{index}].annotations.{_KEY}"
        yield path, ("group", group.name), group.annotations
