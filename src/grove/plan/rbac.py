"""Plans the ServiceAccount, token Secret, Role and RoleBinding by which the init containers of a set read its
pods. Only sets with a startup order have them.

    ServiceAccount -> Secret with its token -> RoleBinding
                                     Role   ->

The operator may create Secrets and may not read them. The RoleBinding proves that the Secret exists: it is
created after the Secret and names the UID of its ServiceAccount (docs/decisions/token-secret.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from grove import timing
from grove.api.intents import Create, Delete, Intent, Patch, uid_of
from grove.api.naming import annotations as keys
from grove.api.naming import external_keys, labels, names
from grove.api.naming.labels import ComponentLabel
from grove.api.types.kubernetes_objects import PartialObjectMetadata
from grove.api.types.podcliqueset import PodCliqueSet
from grove.plan.desired import objects
from grove.plan.desired.startup_order import is_ordered
from grove.plan.members.pod_state import controller_uid
from grove.plan.snapshot import RbacObjects
from grove.plan.timestamps import timestamp
from grove.plan.writes.builders import create, delete_of_kind, target_of_kind

Body = dict[str, Any]

RBAC = "rbac.authorization.k8s.io"
RBAC_VERSION = f"{RBAC}/v1"
_KINDS = ("ServiceAccount", "Role", "RoleBinding")


def has_rbac(workload: PodCliqueSet, binding: PartialObjectMetadata | None) -> bool:
    """Whether pods that are created now find the RBAC objects that their init container needs."""
    return _usable(workload, binding) is not None


def plan_rbac(workload: PodCliqueSet, access: RbacObjects, now: float) -> tuple[Intent, ...]:
    """Creates missing objects, in an order in which the RoleBinding proves that the Secret exists."""
    if not is_ordered(workload):
        return ()
    account, role = _usable(workload, access.account), _usable(workload, access.role)
    binding = _usable(workload, access.binding)
    if adoptions := _adopt_orphans(workload, account, role, binding):
        return adoptions
    create_account = None if account else create(_account(workload))
    create_role = None if role else create(_role(workload))
    creates: list[Intent] = [write for write in (create_account, create_role) if write]
    if binding is not None:
        # A ServiceAccount that was created again has another token: Secret and RoleBinding are created again.
        stale = (
            account is None
            or binding.metadata.annotations.get(keys.TOKEN_SERVICE_ACCOUNT_UID) != account.metadata.uid
        )
        return (*creates, _delete("RoleBinding", binding)) if stale else tuple(creates)
    secret = _secret(workload, account, now, tuple(write.id for write in (create_account,) if write))
    token_of = uid_of(create_account) if create_account else account.metadata.uid if account else ""
    after = tuple(write.id for write in (*creates, secret))
    return (*creates, secret, create(_binding(workload, token_of), after))


def token_secret_settled_at(workload: PodCliqueSet, access: RbacObjects, now: float) -> float | None:
    """When an existing Secret of that name can only be the one of this ServiceAccount; None if that does not
    matter."""
    account = _usable(workload, access.account)
    if account is None or has_rbac(workload, access.binding) or not is_ordered(workload):
        return None
    settled_at = timestamp(account.metadata.creation_timestamp) + timing.TOKEN_CLEANUP
    return settled_at if now < settled_at else None


def delete_rbac(set_uid: str, access: RbacObjects) -> list[Delete]:
    """Deletes all of them except the Secret, which Kubernetes deletes after its ServiceAccount."""
    found = (access.account, access.role, access.binding)
    return [
        _delete(kind, found_object)
        for kind, found_object in zip(_KINDS, found, strict=True)
        if found_object is not None
        and found_object.metadata.deletion_timestamp is None
        and controller_uid(found_object.metadata) == set_uid
    ]


def token_secret(workload: PodCliqueSet) -> Create:
    """Creates the Secret of a set that has had one; one that still exists is accepted."""
    return replace(_secret(workload, None, 0.0, ()), may_exist=True)


def _adopt_orphans(workload: PodCliqueSet, *found: PartialObjectMetadata | None) -> tuple[Intent, ...]:
    """Adopts objects that lost their owner when a set of that name was deleted with `--cascade=orphan`. The
    operator has no right to patch Roles and RoleBindings: they are deleted and created again."""
    orphans = [
        (kind, found_object)
        for kind, found_object in zip(_KINDS, found, strict=True)
        if found_object and not controller_uid(found_object.metadata)
    ]
    return tuple(
        _adopt(workload, found_object) if kind == "ServiceAccount" else _delete(kind, found_object)
        for kind, found_object in orphans
    )


def _adopt(workload: PodCliqueSet, account: PartialObjectMetadata) -> Patch:
    metadata = {
        "resourceVersion": account.metadata.resource_version,
        "ownerReferences": objects.set_owner_reference(workload),
    }
    return Patch(target_of_kind("v1", "ServiceAccount", account), {"metadata": metadata})


def _delete(kind: str, found: PartialObjectMetadata) -> Delete:
    version = "v1" if kind == "ServiceAccount" else RBAC_VERSION
    return delete_of_kind(version, kind, found)


def _usable(workload: PodCliqueSet, found: PartialObjectMetadata | None) -> PartialObjectMetadata | None:
    """The object if it is not terminating and is controlled by the set or by nothing."""
    if found is None or found.metadata.deletion_timestamp is not None:
        return None
    return found if controller_uid(found.metadata) in ("", workload.metadata.uid) else None


def _account(workload: PodCliqueSet) -> Body:
    metadata = _metadata(
        workload, names.service_account(workload.metadata.name), ComponentLabel.SERVICE_ACCOUNT, {}
    )
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata,
        "automountServiceAccountToken": True,
    }


def _role(workload: PodCliqueSet) -> Body:
    metadata = _metadata(workload, names.role(workload.metadata.name), ComponentLabel.ROLE, {})
    rule = {"apiGroups": [""], "resources": ["pods", "pods/status"], "verbs": ["get", "list", "watch"]}
    return {"apiVersion": RBAC_VERSION, "kind": "Role", "metadata": metadata, "rules": [rule]}


def _binding(workload: PodCliqueSet, token_of: str) -> Body:
    name, meta = names.role(workload.metadata.name), workload.metadata
    account = {
        "kind": "ServiceAccount",
        "name": names.service_account(meta.name),
        "namespace": meta.namespace,
    }
    return {
        "apiVersion": RBAC_VERSION,
        "kind": "RoleBinding",
        "metadata": _metadata(
            workload, name, ComponentLabel.ROLE_BINDING, {keys.TOKEN_SERVICE_ACCOUNT_UID: token_of}
        ),
        "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": name},
        "subjects": [account],
    }


def _secret(
    workload: PodCliqueSet, account: PartialObjectMetadata | None, now: float, after: tuple[str, ...]
) -> Create:
    """Creates the token Secret. An existing Secret is accepted if the ServiceAccount is old enough: the
    Secret of a former ServiceAccount with the same name has been deleted by then."""
    created_at = timestamp(account.metadata.creation_timestamp) if account else now
    set_name = workload.metadata.name
    annotations = {external_keys.SERVICE_ACCOUNT_NAME: names.service_account(set_name)}
    metadata = _metadata(workload, names.token_secret(set_name), ComponentLabel.TOKEN_SECRET, annotations)
    body = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata,
        "type": external_keys.SERVICE_ACCOUNT_TOKEN,
    }
    return replace(create(body, after), write_only=True, may_exist=now - created_at > timing.TOKEN_CLEANUP)


def _metadata(
    workload: PodCliqueSet, name: str, component: ComponentLabel, annotations: Mapping[str, str]
) -> Body:
    object_labels = labels.named(workload.metadata.name, name, component)
    return objects.metadata(workload, name, object_labels, annotations, objects.set_owner_reference(workload))
