"""Lays out the report of `grove plan` as a tree of lines. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from grove import timing
from grove.api.formats.name_list import name_list
from grove.cli.views.text_layout import BAD, GOOD, WAITING, Row
from grove.dry_run.model import (
    ObjectCount,
    PlannedGang,
    PlannedUnit,
    PlanReport,
    UpdatePlan,
    Verdict,
    WorkloadPlan,
)
from grove.reasons.placement import NEVER_FITS

_TEXTS = {
    Verdict.FITS: "fits",
    Verdict.DOES_NOT_FIT: "does not fit",
    Verdict.UNKNOWN: "cannot be known",
    Verdict.REJECTED: "rejected",
}
_STYLES = {Verdict.FITS: GOOD, Verdict.UNKNOWN: WAITING}
_SHOWN = 12  # units of an update that are named


def plan_rows(report: PlanReport) -> Iterator[Row]:
    """One tree for each object of the input, and what could not be read."""
    yield from map(_workload, report.plans)
    yield from (Row("not read", (each,), WAITING) for each in report.unread)


def _workload(plan: WorkloadPlan) -> Row:
    name = f"{plan.namespace}/{plan.name}" if plan.namespace else plan.name
    is_workload = plan.namespace and plan.verdict is not Verdict.REJECTED
    facts = [_TEXTS[plan.verdict], plan.action] if is_workload else [plan.action]
    children = [
        *_admission(plan),
        *([] if plan.max_replicas is None else [Row("replicas", (_most(plan.max_replicas),), GOOD)]),
        *_objects(plan.objects),
        *([_update(plan.update)] if plan.update is not None else []),
        *(Row("fabric domain", (each,), GOOD) for each in plan.fabric_domains),
        *(Row("claim", (each,), GOOD) for each in plan.claims),
        *_gangs(plan.gangs),
        *(Row("error", (each,), BAD) for each in plan.errors),
        *(Row("note", (each,), WAITING) for each in plan.notes),
    ]
    style = _STYLES.get(plan.verdict, BAD)
    return Row(f"{plan.kind} {name}", tuple(facts), style, tuple(children))


def _most(replicas: int) -> str:
    """How many replicas fit; no more are tried than the limit."""
    if replicas >= timing.PLANNED_REPLICAS:
        return f"{replicas} or more fit now"
    return f"at most {replicas} {'fits' if replicas == 1 else 'fit'} now"


def _admission(plan: WorkloadPlan) -> Iterator[Row]:
    found = plan.admission
    if found.allowed:
        yield Row("admission", (f"allowed by {found.by}",), GOOD)
    elif not found.known:
        yield Row("admission", (f"cannot be known by {found.by}: {found.message}",), WAITING)
    else:
        yield Row("admission", (f"rejected by {found.by}: {found.message}",), BAD)
    yield from (Row("warning", (each,), WAITING) for each in found.warnings)


def _objects(objects: Sequence[ObjectCount]) -> Iterator[Row]:
    verbs = {
        "creates": [(each.kind, each.created) for each in objects],
        "changes": [(each.kind, each.changed) for each in objects],
        "deletes": [(each.kind, each.deleted) for each in objects],
    }
    for verb, by_kind in verbs.items():
        counts = [f"{len(names)} {kind}{_s(len(names))}" for kind, names in by_kind if names]
        if counts:
            yield Row(verb, (", ".join(counts),), BAD if verb == "deletes" else GOOD)


def _update(update: UpdatePlan) -> Row:
    available = (
        f"at least {update.lowest_available} of {update.replicas} replica{_s(update.replicas)} available"
    )
    count = f"{len(update.units)} unit{_s(len(update.units))} replaced"
    shown = [Row(str(number), (name,), WAITING) for number, name in enumerate(update.units[:_SHOWN], 1)]
    if (more := len(update.units) - len(shown)) > 0:
        shown.append(Row("…", (f"and {more} more",), WAITING))
    incomplete = () if update.complete else ("not followed to its end",)
    return Row("update", (count, available, *incomplete), WAITING, tuple(shown))


def _gangs(gangs: Sequence[PlannedGang]) -> Iterator[Row]:
    """One row for each gang; those that lack the same as an earlier one share a row, since a set may have
    hundreds of equal replicas."""
    alike: dict[object, list[PlannedGang]] = {}
    for gang in gangs:
        lacks = (gang.pods, *((each.domain, each.level, each.text) for each in gang.missing))
        alike.setdefault(lacks if gang.missing else gang.name, []).append(gang)
    for first, *others in alike.values():
        yield _gang(first)
        if others:
            names = name_list([each.name for each in others])
            lack = "lacks" if len(others) == 1 else "lack"
            yield Row(f"{len(others)} more gang{_s(len(others))}", (f"{lack} the same: {names}",), BAD)


def _gang(gang: PlannedGang) -> Row:
    name = f"gang {gang.name}"
    if gang.placed:
        whole, *parts = gang.units
        facts = [_where(whole)]
        if gang.fallback:
            facts.append(f"by fallback {gang.fallback} after {gang.after:g} s")
        if gang.preempts:
            facts.append("preempts pods of a lower priority")
        if gang.depends:
            facts.append("depends on the nodes that earlier gangs get")
        if gang.unplaced:
            facts.append(f"{gang.unplaced} pod{_s(gang.unplaced)} beyond the minimum without a node")
        children = tuple(Row(each.name, (_where(each),), GOOD, parent=gang.name) for each in parts)
        return Row(name, tuple(facts), GOOD, children)
    style = BAD if gang.refused else WAITING
    if not gang.missing:
        return Row(name, (gang.message,), style)
    missing: dict[str, list[str]] = {}
    for each in gang.missing:
        where = _domain(each.level, each.domain)
        missing.setdefault(where, [f"{each.unit}: "]).append(each.text)
    rows = tuple(
        Row(where, (unit + ", ".join(dict.fromkeys(texts)),), BAD)
        for where, (unit, *texts) in missing.items()
    )
    empty = ("even if the cluster were empty",) if gang.message.startswith(NEVER_FITS) else ()
    return Row(name, (_pods_do_not_fit(gang.pods), *empty), style, rows)


def _pods_do_not_fit(pods: int) -> str:
    return f"{pods} pods do not fit" if pods != 1 else "1 pod does not fit"


def _where(unit: PlannedUnit) -> str:
    count = f"{unit.pods} pod{_s(unit.pods)} on {unit.nodes} node{_s(unit.nodes)}"
    return f"{count}, {_domain(unit.level, unit.domain)}"


def _domain(level: str, domain: Sequence[str]) -> str:
    return f"{level.rpartition('/')[2]} {'/'.join(domain)}" if domain else "the cluster"


def _s(count: int) -> str:
    return "" if count == 1 else "s"
