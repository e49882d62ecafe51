"""Assigns the errors of a pass to the objects whose `status.lastErrors` report them: cliques and groups for
their own pods and claims, the set for everything else. Also adds the errors to statuses."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from grove.api.error_codes import ErrorCode, Operation, describe
from grove.api.intents import Create, Delete, Intent, ObjectRef, Patch, Target
from grove.api.types.common import LastError
from grove.api.types.podclique import PodClique
from grove.api.types.podcliquescalinggroup import PodCliqueScalingGroup
from grove.api.types.podgang import PodGang
from grove.kube.errors import NoAnswer
from grove.kube.executor.name_conflict import NameConflict
from grove.kube.executor.outcome import IntentState, Outcome
from grove.kube.executor.write_latency import CAUSE
from grove.plan.desired.shared_claims import KIND as CLAIM
from grove.plan.model import StatusUpdate, UserError
from grove.plan.timestamps import rfc3339

_VERBS = {
    "Create": "CREATE",
    "Patch": "SYNC",
    "Status": "SYNC",
    "Delete": "DELETE",
}
_CODES_BY_KIND = {
    PodClique.KIND.name: ErrorCode.SYNC_CLIQUE,
    PodGang.KIND.name: ErrorCode.WRITE_GANG,
    "Service": ErrorCode.SYNC_SERVICE,
    "HorizontalPodAutoscaler": ErrorCode.SYNC_AUTOSCALER,
}
"""The error code of a failed create or patch by kind, as in upstream's API."""
_CLAIM_CODES = {
    PodCliqueScalingGroup.KIND.name: ErrorCode.SYNC_GROUP_CLAIM,
    PodClique.KIND.name: ErrorCode.SYNC_CLIQUE_CLAIM,
}
"""The error code of a claim that cannot be created, by the kind of its owner; otherwise the set owns it."""
_SCALE_TO_ZERO = (
    "; minReplicas 0 needs Kubernetes 1.37 or the feature gate HPAScaleToZero of API server and controller "
    "manager: switch it on, or raise minReplicas"
)


ChildRef = tuple[str, str]
"""Kind and name of a clique or a group."""


class PassErrors(Struct, frozen=True):
    """Errors of one pass: of cliques and groups, and of the set for everything else."""

    of_children: dict[ChildRef, tuple[LastError, ...]] = {}
    of_set: tuple[LastError, ...] = ()

    def differ_from(self, known: tuple[LastError, ...]) -> bool:
        """Whether the set has other errors than the `known` ones, timestamps aside."""
        return {(error.code, error.description) for error in self.of_set} != {
            (error.code, error.description) for error in known
        }

    def last_errors_of(self, target: Target, known: tuple[LastError, ...]) -> tuple[LastError, ...]:
        """The errors of an object; an error that is known already keeps its timestamp."""
        new = self.of_children.get((target.kind, target.name), ())
        dates = {(error.code, error.description): error.observed_at for error in known}
        return tuple(
            LastError(
                error.code, error.description, dates.get((error.code, error.description), error.observed_at)
            )
            for error in new
        )


NO_ERRORS = PassErrors()


def collect_errors(
    outcome: Outcome, now: float, user_errors: Iterable[UserError] = (), code: str = ""
) -> PassErrors:
    """Assign the errors of an outcome and the errors in the plan to objects; equal errors are merged. `code`
    is that of all failed creates and patches, if the kind of key has one."""
    of_children: dict[ChildRef, dict[str, LastError]] = {}
    of_set: dict[str, LastError] = {}
    for user_error in user_errors:
        message = describe(Operation.SYNC, user_error.code, user_error.message)
        last_error = LastError(user_error.code, message, rfc3339(now))
        child = _child(user_error.regarding)
        target = of_children.setdefault(child, {}) if child else of_set
        target[last_error.description] = last_error
    for result in outcome.results:
        if result.state is not IntentState.FAILED:
            continue
        child = _child_of(result.intent)
        cause = _cause(result.error)
        if _creates(result.intent, "Pod") and result.name and child:
            # The server's message names the pod: without the name, the errors of many pods are one.
            cause = cause.replace(result.name, f"{child[1]}-*")
        error = _error(result.intent, cause + _remedy(result.intent, cause), now, code)
        target = of_children.setdefault(child, {}) if child else of_set
        # Of many claims with the same error, the first is named.
        error_key = f"{error.code} {cause.replace(result.name, '*')}" if result.name else error.description
        target.setdefault(error_key if _creates(result.intent, CLAIM) else error.description, error)
    if not of_children and not of_set:
        return NO_ERRORS
    return PassErrors(
        {child: tuple(errors.values()) for child, errors in of_children.items()}, tuple(of_set.values())
    )


def unfinished(outcome: Outcome) -> frozenset[ChildRef | None]:
    """The cliques and groups with planned writes that are not done; None: the set and all of them."""
    return frozenset(
        _child_of(result.intent) for result in outcome.results if result.state is not IntentState.DONE
    )


def complete_status(
    status_update: StatusUpdate, errors: PassErrors, remaining: frozenset[ChildRef | None]
) -> StatusUpdate:
    """Add `lastErrors` and, if no write of the object is `remaining`, `observedGeneration`."""
    if not hasattr(status_update.desired, "last_errors"):
        return status_update
    complete = remaining.isdisjoint({None, (status_update.target.kind, status_update.target.name)})
    if status_update.observed_generation == 0:  # a set, which aggregates the reports of its replicas
        return status_update if complete else _not_observed(status_update)
    found = errors.last_errors_of(status_update.target, status_update.current.last_errors)
    observed = status_update.observed_generation if complete else status_update.current.observed_generation
    return replace(
        status_update, desired=replace(status_update.desired, last_errors=found, observed_generation=observed)
    )


def _not_observed(status_update: StatusUpdate) -> StatusUpdate:
    before = status_update.current.observed_generation
    return replace(status_update, desired=replace(status_update.desired, observed_generation=before))


def _cause(error: Exception | None) -> str:
    """The message of the error; `NameConflict` is prefixed, so that programs can match it."""
    if isinstance(error, NoAnswer):
        return f"{error}; {CAUSE}"
    return f"NameConflict: {error}" if isinstance(error, NameConflict) else str(error)


def _remedy(intent: Intent, cause: str) -> str:
    """What the user can do about a refused autoscaler; the API server's message does not name the gate."""
    if intent.target.kind != "HorizontalPodAutoscaler" or not isinstance(intent, Create | Patch):
        return ""
    at_zero = intent.body.get("spec", {}).get("minReplicas") == 0
    return _SCALE_TO_ZERO if at_zero and "spec.minReplicas" in cause else ""


def _error(intent: Intent, cause: str, now: float, code: str) -> LastError:
    deletes = isinstance(intent, Delete)
    operation = Operation.DELETE if deletes else Operation.SYNC
    code = code if code and not deletes else _code(intent)
    return LastError(code, describe(operation, code, _attempt(intent), cause), rfc3339(now))


def _code(intent: Intent) -> str:
    kind = intent.target.kind
    if _creates(intent, CLAIM):
        child = _child_of(intent)
        return _CLAIM_CODES[child[0]] if child else ErrorCode.SYNC_SET_CLAIM
    if isinstance(intent, Create | Patch) and kind in _CODES_BY_KIND:
        return _CODES_BY_KIND[kind]
    if isinstance(intent, Patch) and kind == "Pod" and "schedulingGates" in intent.body.get("spec", {}):
        return ErrorCode.REMOVE_GATE
    return f"ERR_{_VERBS[type(intent).__name__]}_{kind.upper()}"


def _attempt(intent: Intent) -> str:
    """The failed operation, without the names of single pods: pods of one clique share one error."""
    if _creates(intent, "Pod") and (child := _child_of(intent)):
        return f"could not create pods of {child[1]}"
    return f"could not {intent.id}"


def _child_of(intent: Intent) -> ChildRef | None:
    """The clique or group of an object that could not be created. Deletes are errors of the set: the part
    itself may be deleted next."""
    return _child(intent.regarding) if isinstance(intent, Create) else None


def _child(regarding: ObjectRef | None) -> ChildRef | None:
    return (regarding.kind, regarding.name) if regarding is not None else None


def _creates(intent: Intent, kind: str) -> bool:
    return isinstance(intent, Create) and intent.target.kind == kind
