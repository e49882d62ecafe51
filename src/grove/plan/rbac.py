"""What the init containers of a set need in order to see its pods; only sets with a start order have it.

    ServiceAccount -> Secret with its token -> RoleBinding
                                     Role   ->

The operator may make Secrets and never look at them. That there is one is known by the RoleBinding, which is
made after it and says for which ServiceAccount (docs/decisions/token-secret.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from grove.api.intents import Create, Delete, Intent, Patch, uid_of
from grove.api.naming import annotations as keys
from grove.api.naming import external_keys, labels, names
from grove.api.naming.labels import ComponentLabel
from grove.api.types.kubernetes_objects import PartialObjectMetadata
from grove.api.types.podcliqueset import PodCliqueSet
from grove.plan.desired import objects
from grove.plan.desired.startup_order import is_ordered
from grove.plan.members.pod_state import controller_uid
from grove.plan.timestamps import timestamp
from grove.plan.writes.builders import create, target_of_kind

Body = dict[str, Any]

RBAC = "rbac.authorization.k8s.io"
RBAC_VERSION = f"{RBAC}/v1"
_KINDS = ("ServiceAccount", "Role", "RoleBinding")
_TOKEN_CLEANUP_SECONDS = 20.0
"""Kubernetes removes the token of a deleted ServiceAccount in its own time; after so long it has."""


class RbacObjects(Struct, frozen=True):
    """What is there of it."""

    account: PartialObjectMetadata | None = None
    role: PartialObjectMetadata | None = None
    binding: PartialObjectMetadata | None = None


def has_rbac(workload: PodCliqueSet, binding: PartialObjectMetadata | None) -> bool:
    """Whether pods of the set that are made now will find what they need."""
    return _usable(workload, binding) is not None


def plan_rbac(workload: PodCliqueSet, access: RbacObjects, now: float) -> tuple[Intent, ...]:
    """Make what is missing, in an order in which the RoleBinding vouches for the Secret."""
    if not is_ordered(workload):
        return ()
    account, role = _usable(workload, access.account), _usable(workload, access.role)
    binding = _usable(workload, access.binding)
    if adoptions := _adopt_orphans(workload, account, role, binding):
        return adoptions
    make_account = None if account else create(_account(workload))
    make_role = None if role else create(_role(workload))
    made: list[Intent] = [write for write in (make_account, make_role) if write]
    if binding is not None:
        # A ServiceAccount that was made anew has another token: both are to be made again.
        stale = (
            account is None
            or binding.metadata.annotations.get(keys.TOKEN_SERVICE_ACCOUNT_UID) != account.metadata.uid
        )
        return (*made, _delete("RoleBinding", binding)) if stale else tuple(made)
    secret = _secret(workload, account, now, tuple(write.id for write in (make_account,) if write))
    token_of = uid_of(make_account) if make_account else account.metadata.uid if account else ""
    after = tuple(write.id for write in (*made, secret))
    return (*made, secret, create(_binding(workload, token_of), after))


def token_secret_settled_at(workload: PodCliqueSet, access: RbacObjects, now: float) -> float | None:
    """When a Secret that is in the way can be nobody's but ours; None if that is no question."""
    account = _usable(workload, access.account)
    if account is None or has_rbac(workload, access.binding) or not is_ordered(workload):
        return None
    settled_at = timestamp(account.metadata.creation_timestamp) + _TOKEN_CLEANUP_SECONDS
    return settled_at if now < settled_at else None


def delete_rbac(set_uid: str, access: RbacObjects) -> list[Delete]:
    """All of it goes; of the Secret, Kubernetes takes care when its ServiceAccount has gone."""
    found = (access.account, access.role, access.binding)
    return [
        _delete(kind, thing)
        for kind, thing in zip(_KINDS, found, strict=True)
        if thing is not None
        and thing.metadata.deletion_timestamp is None
        and controller_uid(thing.metadata) == set_uid
    ]


def token_secret(workload: PodCliqueSet) -> Create:
    """The Secret of a set that has had one; if it is still there, that is as good."""
    return replace(_secret(workload, None, 0.0, ()), may_exist=True)


def _adopt_orphans(workload: PodCliqueSet, *found: PartialObjectMetadata | None) -> tuple[Intent, ...]:
    """What nobody owns since a set of that name was deleted with `--cascade=orphan` is owned again. Roles
    cannot be changed with the rights that we have: they are made anew."""
    orphans = [
        (kind, thing)
        for kind, thing in zip(_KINDS, found, strict=True)
        if thing and not controller_uid(thing.metadata)
    ]
    return tuple(
        _adopt(workload, thing) if kind == "ServiceAccount" else _delete(kind, thing)
        for kind, thing in orphans
    )


def _adopt(workload: PodCliqueSet, account: PartialObjectMetadata) -> Patch:
    metadata = {
        "resourceVersion": account.metadata.resource_version,
        "ownerReferences": objects.set_owner_reference(workload),
    }
    return Patch(target_of_kind("v1", "ServiceAccount", account), {"metadata": metadata})


def _delete(kind: str, found: PartialObjectMetadata) -> Delete:
    version = "v1" if kind == "ServiceAccount" else RBAC_VERSION
    return Delete(target_of_kind(version, kind, found), uid=found.metadata.uid)


def _usable(workload: PodCliqueSet, found: PartialObjectMetadata | None) -> PartialObjectMetadata | None:
    """Ours to use: there to stay, and the set's or nobody's."""
    if found is None or found.metadata.deletion_timestamp is not None:
        return None
    return found if controller_uid(found.metadata) in ("", workload.metadata.uid) else None


def _token_account_uid(binding: PartialObjectMetadata) -> str:
    return binding.metadata.annotations.get(keys.TOKEN_SERVICE_ACCOUNT_UID, "")


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
    """A Secret of that name is this ServiceAccount's if that is old enough: what belonged to another of the
    same name has been removed by then."""
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
    return replace(create(body, after), write_only=True, may_exist=now - created_at > _TOKEN_CLEANUP_SECONDS)


def _metadata(
    workload: PodCliqueSet, name: str, component: ComponentLabel, annotations: Mapping[str, str]
) -> Body:
    object_labels = labels.named(workload.metadata.name, name, component)
    return objects.metadata(workload, name, object_labels, annotations, objects.set_owner_reference(workload))
