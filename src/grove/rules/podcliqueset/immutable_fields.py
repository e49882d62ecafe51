"""Fields of a set that cannot change after creation: which cliques and groups there are, and the fields on
which existing pods, gangs and claims depend.

Topology constraints and fabric annotations are immutable too; their own modules check them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from grove.api.field_errors import FieldError, forbidden, invalid
from grove.api.types.common import ResourceClaimTemplate
from grove.api.types.podcliqueset import CliqueTemplate, ScalingGroupTemplate, StartupType
from grove.rules.decode import CliquePodSpec, Workload

_TEMPLATE = "spec.template"
_CLIQUES = f"{_TEMPLATE}.cliques"
_GROUPS = f"{_TEMPLATE}.podCliqueScalingGroups"
_IMMUTABLE = "field is immutable"
_REMEDY = "create a new PodCliqueSet instead"
_ORDERED = (StartupType.IN_ORDER, StartupType.EXPLICIT)


def errors(old: Workload, new: Workload) -> Iterator[FieldError]:
    """Errors for changes of immutable fields. Cliques and groups are matched by name."""
    before, after = old.template, new.template
    yield from _same(f"{_TEMPLATE}.cliqueStartupType", before.clique_startup_type, after.clique_startup_type)
    if not _same_claims(before.resource_claim_templates, after.resource_claim_templates):
        names = [claim.name for claim in after.resource_claim_templates]
        yield invalid(f"{_TEMPLATE}.resourceClaimTemplates", names, _IMMUTABLE)
    yield from _same(f"{_TEMPLATE}.resourceSharing", before.resource_sharing, after.resource_sharing)
    yield from _parts(_CLIQUES, "PodCliques", before.cliques, after.cliques)
    yield from _cliques(old, new)
    yield from _parts(
        _GROUPS, "scaling groups", before.pod_clique_scaling_groups, after.pod_clique_scaling_groups
    )
    yield from _groups(before.pod_clique_scaling_groups, after.pod_clique_scaling_groups)


def _same(path: str, old: Any, new: Any) -> Iterator[FieldError]:
    if old != new:
        yield invalid(path, new, _IMMUTABLE)


_Parts = Sequence[CliqueTemplate] | Sequence[ScalingGroupTemplate]


def _parts(path: str, plural: str, old: _Parts, new: _Parts) -> Iterator[FieldError]:
    if len(old) != len(new):
        counts = f"there are {len(old)}, not {len(new)}"
        yield forbidden(path, f"{plural} cannot be added or removed: {counts}; {_REMEDY}")
    known = {part.name for part in old}
    for part in new:
        if part.name not in known:
            why = f"{plural} cannot be added or renamed: {part.name} is new; {_REMEDY}"
            yield forbidden(f"{path}.name", why)


def _cliques(old: Workload, new: Workload) -> Iterator[FieldError]:
    before = [clique.name for clique in old.template.cliques]
    after = [clique.name for clique in new.template.cliques]
    if old.template.clique_startup_type in _ORDERED and before != after and sorted(before) == sorted(after):
        startup, order = old.template.clique_startup_type, ", ".join(before)
        why = f"the order of PodCliques cannot be changed with {startup}: keep the order {order}"
        yield invalid(_CLIQUES, after, why)
    known = dict(zip(before, zip(old.template.cliques, old.pods, strict=True), strict=True))
    for index, (clique, pod) in enumerate(zip(new.template.cliques, new.pods, strict=True)):
        if clique.name in known:
            yield from _clique(index, *known[clique.name], clique, pod)


def _clique(
    index: int, old: CliqueTemplate, old_pod: CliquePodSpec, new: CliqueTemplate, pod: CliquePodSpec
) -> Iterator[FieldError]:
    spec = f"{_CLIQUES}.spec"
    yield from _same(f"{spec}.roleName", old.spec.role_name or old.name, new.spec.role_name or new.name)
    yield from _same(f"{spec}.minAvailable", _min_available(old), _min_available(new))
    yield from _same(f"{spec}.startsAfter", old.spec.starts_after, new.spec.starts_after)
    yield from _same(f"{spec}.podSpec.schedulerName", old_pod.scheduler_name, pod.scheduler_name)
    yield from _same(f"{_CLIQUES}[{index}].resourceSharing", old.resource_sharing, new.resource_sharing)


def _min_available(clique: CliqueTemplate) -> int:
    return clique.spec.replicas if clique.spec.min_available is None else clique.spec.min_available


def _groups(old: Sequence[ScalingGroupTemplate], new: Sequence[ScalingGroupTemplate]) -> Iterator[FieldError]:
    known = {group.name: group for group in old}
    for group in new:
        if (before := known.get(group.name)) is not None:
            yield from _same(f"{_GROUPS}.cliqueNames", before.clique_names, group.clique_names)
            yield from _same(f"{_GROUPS}.minAvailable", before.min_available, group.min_available)
            yield from _same(f"{_GROUPS}.resourceSharing", before.resource_sharing, group.resource_sharing)


def _same_claims(old: Sequence[ResourceClaimTemplate], new: Sequence[ResourceClaimTemplate]) -> bool:
    return len(old) == len(new) and all(
        one.name == other.name and _same_json(bytes(one.template_spec), bytes(other.template_spec))
        for one, other in zip(old, new, strict=True)
    )


def _same_json(one: bytes, other: bytes) -> bool:
    return one == other or bool(
        _without_empty(msgspec.json.decode(one)) == _without_empty(msgspec.json.decode(other))
    )


def _without_empty(value: Any) -> Any:
    """The value without null and empty fields: clients that read a set and write it back add an empty
    `metadata`. The `parameters` of a device driver are kept as they are."""
    if isinstance(value, list):
        return [_without_empty(each) for each in value]
    if not isinstance(value, dict):
        return value
    read = {key: each if key == "parameters" else _without_empty(each) for key, each in value.items()}
    return {key: each for key, each in read.items() if each not in (None, {}, [])}
