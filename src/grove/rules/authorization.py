"""Who may change what the operator manages.

The set of the object decides: with `grove.io/disable-managed-resource-protection: "true"` on it everybody
may; else only the operator itself and users that the configuration exempts. Pods may be deleted by anybody
whom the API server lets: they come back.
"""

from __future__ import annotations

from grove.api.naming import annotations as keys
from grove.api.naming import labels
from grove.rules.model import Decision, Facts, ManagedObjectRequest, ParentSet

_OPERATIONS = {"CREATE": "created", "UPDATE": "changed", "DELETE": "deleted"}
_ALLOWED = Decision(allowed=True)


def parent_name(request: ManagedObjectRequest) -> str:
    """The set that the object belongs to, by its labels; empty if they name none. On UPDATE the old labels
    count: nobody frees an object by relabelling it."""
    carried = request.new_labels if request.operation == "CREATE" else request.old_labels
    name = carried.get(labels.PART_OF, "")
    return name if isinstance(name, str) else ""


def authorize(request: ManagedObjectRequest, parent: ParentSet | None, facts: Facts) -> Decision:
    """Whether the request may pass. `parent` is the set of `parent_name` in the request's namespace, or None
    if there is none."""
    if request.operation not in _OPERATIONS:
        return _ALLOWED
    if not (name := parent_name(request)):
        return _unprotected(f"{_called(request)} has no label {labels.PART_OF}: it is not protected")
    if parent is None:
        return _unprotected(f"PodCliqueSet {name} of {_called(request)} does not exist: it is not protected")
    if parent.annotations.get(keys.DISABLE_PROTECTION) == keys.TRUE:
        return _ALLOWED
    if request.operation == "DELETE" and request.resource == "pods":
        return _ALLOWED
    if request.user in (facts.operator_user, *facts.exempt_users) and request.user:
        return _ALLOWED
    return Decision(allowed=False, reason=_refusal(request, parent))


def _unprotected(warning: str) -> Decision:
    return Decision(allowed=True, warnings=(warning,))


def _called(request: ManagedObjectRequest) -> str:
    return f"{request.resource}/{request.name}" if request.name else request.resource


def _refusal(request: ManagedObjectRequest, parent: ParentSet) -> str:
    return (
        f"{_called(request)} belongs to PodCliqueSet {parent.name} and can only be "
        f"{_OPERATIONS[request.operation]} by the Grove operator: change the PodCliqueSet instead, or annotate it "
        f'with {keys.DISABLE_PROTECTION}: "true"'
    )
