"""What gangs report about themselves: made, placed, ready, and where that puts them in their life."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from grove.api.conditions import ConditionType, GangReason
from grove.api.gangs import GangPhase, PodGang, PodGangStatus
from grove.api.meta import Condition
from grove.plan.expand import Gang
from grove.plan.facts import fact, is_true, settle
from grove.plan.status import CliqueView

ASIDE = "; "
"""Parts what we say of a gang that waits from what its scheduler does."""


def gang_status(
    gang: PodGang,
    wanted: Gang,
    views: Mapping[str, CliqueView],
    given_up: str,
    words: str,
    now: float,
    cramped: str = "",
) -> PodGangStatus:
    """A PodGang's status: made, placed, ready, and where that puts it in its life. `given_up` says why it is
    not started anew any more, `words` are the scheduler's if it cannot place it, `cramped` says why nobody
    could."""
    members = [views[clique.name] for clique in wanted.cliques]
    made = all(view.complete for view in members) or is_true(
        gang.status.conditions, ConditionType.INITIALIZED
    )
    waiting_for_nodes = [view.wanted.name for view in members if not view.scheduled]
    waiting_for_pods = [view.wanted.name for view in members if not view.available]
    news: tuple[Condition, ...] = (
        fact(
            ConditionType.INITIALIZED,
            made,
            GangReason.PODS_CREATED if made else GangReason.PODS_PENDING,
            "PodGang is fully initialized" if made else "Not all pods have been created yet",
        ),
        _placed(waiting_for_nodes, words, cramped),
        fact(
            ConditionType.READY,
            not waiting_for_pods,
            GangReason.NOT_READY if waiting_for_pods else GangReason.READY,
            _short_of("ready", waiting_for_pods),
        ),
    )
    phase = GangPhase.RUNNING
    if waiting_for_pods:
        phase = GangPhase.PENDING if waiting_for_nodes else GangPhase.STARTING
    known = tuple(fact for fact in gang.status.conditions if fact.reason != GangReason.BUDGET_SPENT)
    if given_up:
        known = gang.status.conditions
        news = (*news, fact(ConditionType.UNHEALTHY, True, GangReason.BUDGET_SPENT, given_up))
    return replace(gang.status, phase=phase.value, conditions=settle(known, news, now))


def _placed(waiting: list[str], words: str, cramped: str) -> Condition:
    if waiting and cramped:
        return fact(ConditionType.SCHEDULED, False, GangReason.ONE_ENROLLED_POD_PER_NODE, cramped)
    reason = GangReason.NOT_SCHEDULED if waiting else GangReason.SCHEDULED
    said = f"{ASIDE}{words}" if waiting and words else ""
    return fact(ConditionType.SCHEDULED, not waiting, reason, _short_of("scheduled", waiting) + said)


def _short_of(what: str, names: list[str]) -> str:
    if not names:
        return f"Every clique has the pods that it needs {what}"
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return f"Too few pods {what} in {shown}"
