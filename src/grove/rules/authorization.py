"""Which users may create, change or delete objects that the operator manages, for the authorizer webhook.

With the annotation `grove.io/disable-managed-resource-protection: "true"` on the set of the object all users
may; otherwise only the operator itself and the users that the configuration exempts. RBAC still applies.
Every user that RBAC allows may delete pods: the operator replaces them.
"""

from __future__ import annotations

from grove.api.naming import annotations as keys
from grove.api.naming import labels
from grove.rules.model import Decision, Facts, ManagedObjectRequest, ParentSet

_OPERATIONS = {"CREATE": "created", "UPDATE": "changed", "DELETE": "deleted"}
_ALLOWED = Decision(allowed=True)


def parent_name(request: ManagedObjectRequest) -> str:
    """The name of the set that the object belongs to, from its labels; empty if they name none. On UPDATE the
    old labels count: removing the label in the same request does not remove the protection."""
    carried = request.new_labels if request.operation == "CREATE" else request.old_labels
    name = carried.get(labels.PART_OF, "")
    return name if isinstance(name, str) else ""


def authorize(request: ManagedObjectRequest, parent: ParentSet | None, facts: Facts) -> Decision:
    """Whether the request is allowed. `parent` is the set called `parent_name` in the request's namespace, or
    None if it does not exist."""
    if request.operation not in _OPERATIONS:
        return _ALLOWED
    if not (name := parent_name(request)):
        why = f"it has no label {labels.PART_OF} with the name of its PodCliqueSet"
        return _unprotected(request, why)
    if parent is None:
        return _unprotected(request, f"PodCliqueSet {name} does not exist")
    if parent.annotations.get(keys.DISABLE_PROTECTION) == keys.TRUE:
        return _ALLOWED
    if request.operation == "DELETE" and request.resource == "pods":
        return _ALLOWED
    if request.user in (facts.operator_user, *facts.exempt_users) and request.user:
        return _ALLOWED
    return Decision(allowed=False, reason=_denial(request, parent))


def _unprotected(request: ManagedObjectRequest, why: str) -> Decision:
    return Decision(allowed=True, warnings=(f"{_object(request)} is not protected from changes: {why}",))


def _object(request: ManagedObjectRequest) -> str:
    return f"{request.resource}/{request.name}" if request.name else request.resource


def _denial(request: ManagedObjectRequest, parent: ParentSet) -> str:
    return (
        f"{_object(request)} belongs to PodCliqueSet {parent.name} and can only be "
        f"{_OPERATIONS[request.operation]} by the Grove operator: change the PodCliqueSet instead, or "
        f'annotate it with {keys.DISABLE_PROTECTION}: "true"'
    )
