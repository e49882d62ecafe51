"""Why a gang waits, in one line for users: the domains that come closest, and what they lack."""

from __future__ import annotations

from grove import timing
from grove.topology.placement.answers import Answer, DomainReport, GaveUp, NoFit, Reason, Shortage
from grove.topology.placement.index import ClusterIndex
from grove.topology.placement.needs.devices import described


def waiting_message(index: ClusterIndex, answer: Answer) -> str:
    """The reason for a gang that was not placed."""
    if isinstance(answer, GaveUp):
        return "the search for nodes was stopped at its limit of work, and is repeated"
    assert isinstance(answer, NoFit)
    shown = [_report(index, report) for report in answer.reports[: timing.PLACEMENT_DOMAINS_SHOWN]]
    more = answer.domains - len(shown)
    text = "; ".join(shown) + (f"; and {more} more" if more > 0 else "")
    if answer.fits_if_empty is False:
        return f"no place even if the cluster were empty: {text}"
    return f"no place now: {text}"


def _report(index: ClusterIndex, report: DomainReport) -> str:
    where = "the cluster"
    if report.domain:
        key = index.levels[len(report.domain) - 1]
        where = f"{key.rpartition('/')[2]} {'/'.join(report.domain)}"
    reasons = ", ".join(dict.fromkeys(map(shortage_text, report.shortages)))
    return f"{where}: {report.unit}: {reasons}"


def shortage_text(each: Shortage) -> str:
    """One reason, for people."""
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
        case Reason.INSUFFICIENT:
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
        case Reason.CONTRADICTION:
            return f"node selector and node affinity contradict each other in {each.resource}"
        case Reason.BOUND_ELSEWHERE:
            return "pods of the gang are bound elsewhere"
