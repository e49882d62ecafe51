"""Why a gang was not placed: the solver's answer as a reason, with what the closest domains lack."""

from __future__ import annotations

from collections.abc import Sequence

from grove import timing
from grove.api.formats.name_list import name_list
from grove.api.naming.annotations import PACK_DOMAINS
from grove.reasons.codes import ReasonCode as Code
from grove.reasons.model import Evidence, ObjectName, WaitReason
from grove.topology.placement.answers import DomainReport, GaveUp, NoFit, Reason, Shortage
from grove.topology.placement.model import Domain
from grove.topology.placement.needs.devices import described

_CODES = {
    Reason.NOT_READY: Code.NODE_NOT_READY,
    Reason.CORDONED: Code.NODE_CORDONED,
    Reason.TAINT: Code.NODE_TAINT,
    Reason.SELECTOR: Code.NODE_SELECTOR_MISMATCH,
    Reason.INSUFFICIENT: Code.INSUFFICIENT_RESOURCES,
    Reason.NO_SUCH_RESOURCE: Code.INSUFFICIENT_RESOURCES,
    Reason.RESERVED: Code.RESERVED_BY_OTHER_GANG,
    Reason.TOO_LARGE: Code.GANG_TOO_LARGE,
    Reason.FRAGMENTED: Code.DOMAIN_FRAGMENTED,
    Reason.NO_DOMAIN: Code.TOPOLOGY_LABEL_MISSING,
    Reason.EXCLUDED: Code.PREVIOUS_ATTEMPT_FAILED,
    Reason.CONTRADICTION: Code.AFFINITY_CONTRADICTION,
    Reason.BOUND_ELSEWHERE: Code.BOUND_ELSEWHERE,
    Reason.TOO_MANY_PARTITIONS: Code.GANG_TOO_LARGE,
}
NEVER_FITS = "no place even if the cluster were empty"
"""How the message about a gang begins that is too large for the cluster."""
_OF_SIZE = (
    Reason.TOO_LARGE,
    Reason.INSUFFICIENT,
    Reason.RESERVED,
    Reason.FRAGMENTED,
    Reason.TOO_MANY_PARTITIONS,
)
"""What a gang that fits into no empty cluster is refused for."""


def refusal_reason(
    answer: NoFit | GaveUp, levels: Sequence[str], about: ObjectName | None = None
) -> WaitReason:
    """The reason of a gang that was not placed. `levels` are the labels of the topology, from wide to
    narrow."""
    if isinstance(answer, GaveUp):
        message = "the search for nodes was stopped at its limit of work, and is repeated"
        return WaitReason(Code.SOLVER_GAVE_UP, message, about)
    evidence = tuple(each for report in answer.reports for each in _evidence(report, levels))
    message = _message(answer, levels)
    return WaitReason(_code(answer), message, about, evidence, _remedy(answer), changing=True)


def search_failed(bug: Exception) -> WaitReason:
    """The reason of a gang for which the search ended with an error that is a bug."""
    message = f"the search for nodes failed ({type(bug).__name__}, see the operator's log), and is repeated"
    return WaitReason(Code.SOLVER_GAVE_UP, message)


def domain_name(domain: Domain, levels: Sequence[str]) -> str:
    """A domain as users know it: `rack a/r3`."""
    if not domain:
        return "the cluster"
    return f"{levels[len(domain) - 1].rpartition('/')[2]} {'/'.join(domain)}"


def _code(answer: NoFit) -> Code:
    """That of the closest domain that could hold the gang. A gang is too large only if none could."""
    causes = [report.cause for report in answer.reports]
    if answer.fits_if_empty is False and causes[0] in _OF_SIZE:
        return Code.GANG_TOO_LARGE
    possible = (each for each in causes if each not in (Reason.TOO_LARGE, Reason.BOUND_ELSEWHERE))
    cause = next(possible, causes[0])
    return _CODES[Reason.INSUFFICIENT if cause is Reason.TOO_LARGE else cause]


def _remedy(answer: NoFit) -> str:
    report = answer.reports[0]
    named = next((each.resource for each in report.shortages if each.reason is report.cause), "")
    match report.cause:
        case Reason.NO_SUCH_RESOURCE:
            resource = described(report.shortages[0].resource)
            return f"no node has {resource}: correct the request, or add nodes that have it"
        case Reason.TAINT:
            return f"tolerate taint {named} in the pod template, or remove it from nodes"
        case Reason.SELECTOR if named:
            return f"correct the node selector for {named} in the pod template, or label nodes"
        case Reason.NO_DOMAIN if report.partition:
            return f"label nodes with {named}, or do not require one partition ({PACK_DOMAINS})"
        case Reason.NO_DOMAIN:
            return f"label nodes with {named}, or correct the level"
        case Reason.TOO_MANY_PARTITIONS:
            return f"use fewer fabric domains in one gang, or do not require one partition ({PACK_DOMAINS})"
        case _:
            return ""


def _message(answer: NoFit, levels: Sequence[str]) -> str:
    shown = [_report_text(report, levels) for report in answer.reports[: timing.PLACEMENT_DOMAINS_SHOWN]]
    more = answer.domains - len(shown)
    text = "; ".join(shown) + (f"; and {more} more" if more > 0 else "")
    if answer.fits_if_empty is False:
        return f"{NEVER_FITS}: {text}"
    return f"no place now: {text}"


def _report_text(report: DomainReport, levels: Sequence[str]) -> str:
    reasons = name_list(list(dict.fromkeys(map(shortage_text, report.shortages))))
    return f"{_place(report, levels)}: {report.unit}: {reasons}"


def _place(report: DomainReport, levels: Sequence[str]) -> str:
    """Where a gang does not fit: a domain, a partition, or what both have in common."""
    if not report.partition:
        return domain_name(report.domain, levels)
    return f"{domain_name(report.domain, levels)}, {report.partition}" if report.domain else report.partition


def _evidence(report: DomainReport, levels: Sequence[str]) -> list[Evidence]:
    where = _place(report, levels)
    return [
        Evidence(
            _CODES[each.reason],
            where,
            report.unit,
            each.resource,
            each.nodes,
            each.have,
            each.need,
            shortage_text(each),
            report.nodes,
        )
        for each in report.shortages
    ]


def shortage_text(each: Shortage) -> str:
    """One finding in a few words, without the domain."""
    nodes = f"{each.nodes} node{'s' * (each.nodes != 1)}"
    match each.reason:
        case Reason.NOT_READY:
            return f"{nodes} not ready"
        case Reason.CORDONED:
            return f"{nodes} cordoned"
        case Reason.TAINT:
            return f"{nodes} with taint {each.resource}"
        case Reason.SELECTOR:
            return f"{nodes} without a matching {each.resource}"
        case Reason.INSUFFICIENT | Reason.NO_SUCH_RESOURCE:
            return f"needs {each.need} {described(each.resource)}, {each.have} free"
        case Reason.RESERVED:
            return f"{nodes} reserved for other gangs"
        case Reason.TOO_LARGE:
            return f"needs {each.need} pods, {each.have} would fit if it were empty"
        case Reason.FRAGMENTED:
            return "enough in total, on too many nodes"
        case Reason.NO_DOMAIN:
            return f"no node has the label {each.resource}"
        case Reason.EXCLUDED:
            return each.resource
        case Reason.TOO_MANY_PARTITIONS:
            return f"{each.need} fabric domains require one partition each, at most {each.have} are supported"
        case Reason.CONTRADICTION:
            return f"node selector and node affinity contradict each other in {each.resource}"
        case Reason.BOUND_ELSEWHERE:
            return "pods of the gang are bound elsewhere"
