"""Whose error it is: what failed is told on the object that its user looks at."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from grove.api.cliques import PodClique
from grove.api.errors import ErrorCode, Operation, describe
from grove.api.gangs import PodGang
from grove.api.groups import PodCliqueScalingGroup
from grove.api.intents import Create, Delete, DeleteCollection, Intent, Patch, Target
from grove.api.parts import LastError
from grove.api.sets import PodCliqueSet
from grove.kube.errors import NoAnswer
from grove.kube.latency import CAUSE
from grove.kube.outcome import Outcome, State
from grove.kube.taken import NameConflict
from grove.plan.model import Complaint, Draft
from grove.plan.moments import rfc3339
from grove.plan.sharing import KIND as CLAIM

_VERBS = {
    "Create": "CREATE",
    "Patch": "SYNC",
    "Status": "SYNC",
    "Delete": "DELETE",
    "DeleteCollection": "DELETE",
}
_KNOWN = {
    PodClique.KIND.name: ErrorCode.SYNC_CLIQUE,
    PodGang.KIND.name: ErrorCode.WRITE_GANG,
    "Service": ErrorCode.SYNC_SERVICE,
    "HorizontalPodAutoscaler": ErrorCode.SYNC_AUTOSCALER,
}
"""What clients know as the code of a failed write, other than a delete."""
_CLAIMS = {
    PodCliqueSet.KIND.name: ErrorCode.SYNC_SET_CLAIM,
    PodCliqueScalingGroup.KIND.name: ErrorCode.SYNC_GROUP_CLAIM,
    PodClique.KIND.name: ErrorCode.SYNC_CLIQUE_CLAIM,
}
"""What it is called if a claim cannot be made, by the kind of its owner."""


Part = tuple[str, str]
"""Kind and name of a clique or a group."""


class Blame(Struct, frozen=True):
    """Errors of one pass: of cliques and groups, and of the set for everything else."""

    of_parts: dict[Part, tuple[LastError, ...]] = {}
    of_set: tuple[LastError, ...] = ()

    def differ_from(self, known: tuple[LastError, ...]) -> bool:
        """Whether the set has other errors than those, whenever they were observed."""
        return {(error.code, error.description) for error in self.of_set} != {
            (error.code, error.description) for error in known
        }

    def settle(self, target: Target, known: tuple[LastError, ...]) -> tuple[LastError, ...]:
        """The errors of an object; one that is known already keeps its date."""
        new = self.of_parts.get((target.kind, target.name), ())
        dates = {(error.code, error.description): error.observed_at for error in known}
        return tuple(
            LastError(
                error.code, error.description, dates.get((error.code, error.description), error.observed_at)
            )
            for error in new
        )


def blame(outcome: Outcome, now: float, complaints: Iterable[Complaint] = ()) -> Blame:
    """Sort the errors of an outcome, and what the plan itself complains of; the same error twice is one."""
    of_parts: dict[Part, dict[str, LastError]] = {}
    of_set: dict[str, LastError] = {}
    for complaint in complaints:
        words = describe(Operation.SYNC, complaint.code, complaint.words)
        said = LastError(complaint.code, words, rfc3339(now))
        place = of_parts.setdefault(part, {}) if (part := _complains(complaint)) else of_set
        place[said.description] = said
    for result in outcome.results:
        if result.state is not State.FAILED:
            continue
        part = _part_of(result.intent)
        cause = _cause(result.error)
        if _makes(result.intent, "Pod") and result.name and part:
            # The server's words name the pod, and a hundred pods have one trouble.
            cause = cause.replace(result.name, f"{part[1]}-*")
        error = _error(result.intent, cause, now)
        place = of_parts.setdefault(part, {}) if part else of_set
        # Of many claims that have one trouble, the first is named.
        trouble = f"{error.code} {cause.replace(result.name, '*')}" if result.name else error.description
        place.setdefault(trouble if _makes(result.intent, CLAIM) else error.description, error)
    return Blame({part: tuple(errors.values()) for part, errors in of_parts.items()}, tuple(of_set.values()))


def unfinished(outcome: Outcome) -> frozenset[Part | None]:
    """For whom something that was planned has not been done; None: for everybody."""
    return frozenset(_part_of(result.intent) for result in outcome.results if result.state is not State.DONE)


def undone(outcome: Outcome) -> frozenset[str]:
    """The writes that were planned and have not been done."""
    return frozenset(result.intent.id for result in outcome.results if result.state is not State.DONE)


def completed(draft: Draft, errors: Blame, left: frozenset[Part | None]) -> Draft:
    """What only the outcome can tell: the generation that was acted on, if nothing of it is `left` to do, and
    what went wrong."""
    if not hasattr(draft.desired, "last_errors"):
        return draft
    complete = left.isdisjoint({None, (draft.target.kind, draft.target.name)})
    if draft.observed == 0:  # a set, which adds up what its replicas report
        return draft if complete else _not_observed(draft)
    found = errors.settle(draft.target, draft.current.last_errors)
    observed = draft.observed if complete else draft.current.observed_generation
    return replace(draft, desired=replace(draft.desired, last_errors=found, observed_generation=observed))


def _not_observed(draft: Draft) -> Draft:
    before = draft.current.observed_generation
    return replace(draft, desired=replace(draft.desired, observed_generation=before))


def _cause(error: Exception | None) -> str:
    """In the words of whoever refused it; that a name is taken is a word for programs, too."""
    if isinstance(error, NoAnswer):
        return f"{error}; {CAUSE}"
    return f"NameConflict: {error}" if isinstance(error, NameConflict) else str(error)


def _error(intent: Intent, cause: str, now: float) -> LastError:
    goes = isinstance(intent, Delete | DeleteCollection)
    operation, code = Operation.DELETE if goes else Operation.SYNC, _code(intent)
    return LastError(code, describe(operation, code, _words(intent), cause), rfc3339(now))


def _code(intent: Intent) -> str:
    kind = intent.kind if isinstance(intent, DeleteCollection) else intent.target.kind
    if _makes(intent, CLAIM):
        return _CLAIMS[_owner(intent)["kind"]]
    if isinstance(intent, Create | Patch) and kind in _KNOWN:
        return _KNOWN[kind]
    if isinstance(intent, Patch) and kind == "Pod" and "schedulingGates" in intent.body.get("spec", {}):
        return ErrorCode.REMOVE_GATE
    return f"ERR_{_VERBS[type(intent).__name__]}_{kind.upper()}"


def _words(intent: Intent) -> str:
    """What was tried, without the names that differ between pods of one clique: their error is one."""
    if _makes(intent, "Pod"):
        return f"could not create pods of {_owner(intent)['name']}"
    return f"could not {intent.id}"


def _part_of(intent: Intent) -> Part | None:
    """The clique or group of a pod or claim that could not be made."""
    if _makes(intent, "Pod"):
        return PodClique.KIND.name, _owner(intent)["name"]
    if _makes(intent, CLAIM) and _owner(intent)["kind"] != PodCliqueSet.KIND.name:
        return _owner(intent)["kind"], _owner(intent)["name"]
    return None


def _complains(complaint: Complaint) -> Part | None:
    """The clique or group that something is to be told on."""
    if complaint.clique:
        return PodClique.KIND.name, complaint.clique
    return (PodCliqueScalingGroup.KIND.name, complaint.group) if complaint.group else None


def _makes(intent: Intent, kind: str) -> bool:
    return isinstance(intent, Create) and intent.target.kind == kind


def _owner(intent: Intent) -> dict[str, Any]:
    owner: dict[str, Any] = intent.body["metadata"]["ownerReferences"][0]  # type: ignore[union-attr]
    return owner
