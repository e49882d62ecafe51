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

from grove.api import annotations as keys
from grove.api import foreign, labels, names
from grove.api.cluster import Bare
from grove.api.intents import Create, Delete, Intent, Patch, uid_of
from grove.api.labels import Component
from grove.api.sets import PodCliqueSet
from grove.plan import compose
from grove.plan.moments import moment
from grove.plan.order import is_ordered
from grove.plan.pods import controller_uid
from grove.plan.targets import create, foreign_target

Body = dict[str, Any]

RBAC = "rbac.authorization.k8s.io"
RBAC_VERSION = f"{RBAC}/v1"
_KINDS = ("ServiceAccount", "Role", "RoleBinding")
_SETTLED = 20.0
"""Kubernetes removes the token of a deleted ServiceAccount in its own time; after so long it has."""


class Access(Struct, frozen=True):
    """What is there of it."""

    account: Bare | None = None
    role: Bare | None = None
    binding: Bare | None = None


def is_granted(workload: PodCliqueSet, binding: Bare | None) -> bool:
    """Whether pods of the set that are made now will find what they need."""
    return _ours(workload, binding) is not None


def grant(workload: PodCliqueSet, access: Access, now: float) -> tuple[Intent, ...]:
    """Make what is missing, in an order in which the RoleBinding vouches for the Secret."""
    if not is_ordered(workload):
        return ()
    account, role = _ours(workload, access.account), _ours(workload, access.role)
    binding = _ours(workload, access.binding)
    if returning := _returned(workload, account, role, binding):
        return returning
    make_account = None if account else create(_account(workload))
    make_role = None if role else create(_role(workload))
    made: list[Intent] = [write for write in (make_account, make_role) if write]
    if binding is not None:
        # A ServiceAccount that was made anew has another token: both are to be made again.
        void = account is None or binding.metadata.annotations.get(keys.TOKEN_OF) != account.metadata.uid
        return (*made, _delete("RoleBinding", binding)) if void else tuple(made)
    secret = _secret(workload, account, now, tuple(write.id for write in (make_account,) if write))
    token_of = uid_of(make_account) if make_account else account.metadata.uid if account else ""
    after = tuple(write.id for write in (*made, secret))
    return (*made, secret, create(_binding(workload, token_of), after))


def settles_at(workload: PodCliqueSet, access: Access, now: float) -> float | None:
    """When a Secret that is in the way can be nobody's but ours; None if that is no question."""
    account = _ours(workload, access.account)
    if account is None or is_granted(workload, access.binding) or not is_ordered(workload):
        return None
    settled = moment(account.metadata.creation_timestamp) + _SETTLED
    return settled if now < settled else None


def withdraw(set_uid: str, access: Access) -> list[Delete]:
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


def _returned(workload: PodCliqueSet, *found: Bare | None) -> tuple[Intent, ...]:
    """What nobody owns since a set of that name was deleted with `--cascade=orphan` is owned again. Roles
    cannot be changed with the rights that we have: they are made anew."""
    lost = [
        (kind, thing)
        for kind, thing in zip(_KINDS, found, strict=True)
        if thing and not controller_uid(thing.metadata)
    ]
    return tuple(
        _adopt(workload, thing) if kind == "ServiceAccount" else _delete(kind, thing) for kind, thing in lost
    )


def _adopt(workload: PodCliqueSet, account: Bare) -> Patch:
    metadata = {
        "resourceVersion": account.metadata.resource_version,
        "ownerReferences": compose.owned_by_set(workload),
    }
    return Patch(foreign_target("v1", "ServiceAccount", account), {"metadata": metadata})


def _delete(kind: str, found: Bare) -> Delete:
    version = "v1" if kind == "ServiceAccount" else RBAC_VERSION
    return Delete(foreign_target(version, kind, found), uid=found.metadata.uid)


def _ours(workload: PodCliqueSet, found: Bare | None) -> Bare | None:
    """Ours to use: there to stay, and the set's or nobody's."""
    if found is None or found.metadata.deletion_timestamp is not None:
        return None
    return found if controller_uid(found.metadata) in ("", workload.metadata.uid) else None


def _vouches_for(binding: Bare) -> str:
    return binding.metadata.annotations.get(keys.TOKEN_OF, "")


def _account(workload: PodCliqueSet) -> Body:
    metadata = _metadata(
        workload, names.service_account(workload.metadata.name), Component.SERVICE_ACCOUNT, {}
    )
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata,
        "automountServiceAccountToken": True,
    }


def _role(workload: PodCliqueSet) -> Body:
    metadata = _metadata(workload, names.role(workload.metadata.name), Component.ROLE, {})
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
        "metadata": _metadata(workload, name, Component.ROLE_BINDING, {keys.TOKEN_OF: token_of}),
        "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": name},
        "subjects": [account],
    }


def _secret(workload: PodCliqueSet, account: Bare | None, now: float, after: tuple[str, ...]) -> Create:
    """A Secret of that name is this ServiceAccount's if that is old enough: what belonged to another of the
    same name has been removed by then."""
    born = moment(account.metadata.creation_timestamp) if account else now
    set_name = workload.metadata.name
    notes = {foreign.SERVICE_ACCOUNT_NAME: names.service_account(set_name)}
    metadata = _metadata(workload, names.token_secret(set_name), Component.TOKEN_SECRET, notes)
    body = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata,
        "type": foreign.SERVICE_ACCOUNT_TOKEN,
    }
    return replace(create(body, after), unseen=True, may_exist=now - born > _SETTLED)


def _metadata(workload: PodCliqueSet, name: str, component: Component, notes: Mapping[str, str]) -> Body:
    carried = labels.named(workload.metadata.name, name, component)
    return compose.metadata(workload, name, carried, notes, compose.owned_by_set(workload))
