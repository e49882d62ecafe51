"""RBAC objects for init containers: created in an order that proves the Secret, repaired, deleted."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from grove.api.intents import Create, Intent, Patch
from grove.api.meta import ObjectMeta
from grove.api.types.kubernetes_objects import PartialObjectMetadata, Service
from grove.kube.executor.deferred_values import DeferredValues
from grove.plan.deletion import plan_deletion
from grove.plan.podcliqueset import plan_set
from grove.plan.rbac import delete_rbac, has_rbac, plan_rbac, token_secret_settled_at
from grove.plan.snapshot import OwnedObjects, RbacObjects, SetSnapshot
from grove.plan.timestamps import rfc3339
from tests.plan.builders import a_set, read_set
from tests.plan.test_deletion import part

NOW = 1_800_000_000.0
LONG_AGO = NOW - 3600
IN_ORDER = {"cliqueStartupType": "CliqueStartupTypeInOrder"}
ALL = ["create ServiceAccount", "create Role", "create Secret", "create RoleBinding"]


def the_set(uid: str = "uid-set", **template: Any):
    found = read_set(a_set("a b", **(template or IN_ORDER)))
    return replace(found, metadata=replace(found.metadata, uid=uid, resource_version="7"))


def partial_object(
    name: str, uid: str, owner: str = "uid-set", created: float = LONG_AGO, **metadata: Any
) -> PartialObjectMetadata:
    controller = {"apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueSet", "name": "wl", "uid": owner}
    owners = [{**controller, "controller": True}]
    body = {"name": name, "namespace": "ns", "uid": uid, "creationTimestamp": rfc3339(created), **metadata}
    body["ownerReferences"] = owners if owner else []
    return PartialObjectMetadata(msgspec.convert(body, ObjectMeta))


ACCOUNT = partial_object("wl", "uid-account")
ROLE = partial_object("grove.io:pcs:wl", "uid-role")
BINDING = partial_object("grove.io:pcs:wl", "uid-binding", annotations={"grove.io/token-of": "uid-account"})
COMPLETE = RbacObjects(ACCOUNT, ROLE, BINDING)


def words(intents: tuple[Intent, ...]) -> list[str]:
    return [f"{type(intent).__name__.lower()} {intent.target.kind}" for intent in intents]


@pytest.mark.parametrize(
    ("access", "expected"),
    [
        (COMPLETE, []),
        (RbacObjects(), ALL),
        (RbacObjects(account=ACCOUNT), ALL[1:]),
        (RbacObjects(ACCOUNT, ROLE), ALL[2:]),
        (RbacObjects(role=ROLE), [ALL[0], *ALL[2:]]),
        (replace(COMPLETE, role=None), [ALL[1]]),
        (replace(COMPLETE, account=None), [ALL[0], "delete RoleBinding"]),
        (replace(COMPLETE, account=partial_object("wl", "uid-of-another")), ["delete RoleBinding"]),
        (replace(COMPLETE, binding=partial_object("r", "u")), ["delete RoleBinding"]),
        (
            replace(COMPLETE, account=partial_object("wl", "u", owner="uid-of-old")),
            [ALL[0], "delete RoleBinding"],
        ),
        (replace(COMPLETE, role=partial_object("r", "u", deletionTimestamp=rfc3339(NOW))), [ALL[1]]),
        (replace(COMPLETE, account=partial_object("wl", "uid-account", owner="")), ["patch ServiceAccount"]),
        (replace(COMPLETE, role=partial_object("r", "u", owner="")), ["delete Role"]),
        (replace(COMPLETE, binding=partial_object("r", "u", owner="")), ["delete RoleBinding"]),
    ],
)
def test_missing_objects_created_and_stale_binding_deleted(access, expected):
    assert words(plan_rbac(the_set(), access, NOW)) == expected


def test_binding_is_created_last_with_uid_of_token_account():
    account, role, secret, binding = plan_rbac(the_set(), RbacObjects(), NOW)
    assert (account.after, role.after) == ((), ())
    assert secret.after == (account.id,)
    assert set(binding.after) == {account.id, role.id, secret.id}
    bound = DeferredValues()
    bound.uids[account.id] = "uid-new"
    body = msgspec.json.decode(bound.encode(binding.body))
    assert body["metadata"]["annotations"] == {"grove.io/token-of": "uid-new"}


def test_created_objects_match_the_contract():
    account, role, secret, binding = (intent.body for intent in plan_rbac(the_set(), RbacObjects(), NOW))
    named = [body["metadata"]["name"] for body in (account, role, secret, binding)]
    assert named == ["wl", "grove.io:pcs:wl", "wl-ic-sat", "grove.io:pcs:wl"]
    assert account["automountServiceAccountToken"] is True
    assert role["rules"] == [
        {"apiGroups": [""], "resources": ["pods", "pods/status"], "verbs": ["get", "list", "watch"]}
    ]
    assert binding["roleRef"] == {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "Role",
        "name": "grove.io:pcs:wl",
    }
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "wl", "namespace": "ns"}]
    assert secret["type"] == "kubernetes.io/service-account-token"
    assert secret["metadata"]["annotations"] == {"kubernetes.io/service-account.name": "wl"}
    assert role["metadata"]["labels"] == {
        "app.kubernetes.io/managed-by": "grove-operator",
        "app.kubernetes.io/part-of": "wl",
        "app.kubernetes.io/name": "grove.io-pcs-wl",
        "app.kubernetes.io/component": "pod-role",
    }
    object_labels = [body["metadata"]["labels"] for body in (account, secret, binding)]
    assert [found["app.kubernetes.io/component"] for found in object_labels] == [
        "pod-service-account",
        "pod-sa-token-secret",
        "pod-role-binding",
    ]
    owners = [body["metadata"]["ownerReferences"][0]["uid"] for body in (account, role, secret, binding)]
    assert owners == ["uid-set"] * 4


@pytest.mark.parametrize(("age", "trusted"), [(0, False), (10, False), (3600, True)])
def test_existing_secret_accepted_once_account_is_old_enough(age, trusted):
    """A new ServiceAccount may find the Secret of one that was deleted with its set."""
    young = RbacObjects(partial_object("wl", "uid-account", created=NOW - age), ROLE)
    secret = next(i for i in plan_rbac(the_set(), young, NOW) if i.target.kind == "Secret")
    assert (secret.may_exist, secret.write_only) == (trusted, True)
    assert (token_secret_settled_at(the_set(), young, NOW) is None) == trusted


def test_new_account_requires_new_secret():
    secret = next(i for i in plan_rbac(the_set(), RbacObjects(), NOW) if i.target.kind == "Secret")
    assert (secret.may_exist, secret.write_only) == (False, True)


def test_set_without_startup_order_has_no_rbac_objects():
    assert plan_rbac(the_set(cliqueStartupType="CliqueStartupTypeAnyOrder"), RbacObjects(), NOW) == ()


@pytest.mark.parametrize(
    ("binding", "granted"),
    [
        (BINDING, True),
        (None, False),
        (partial_object("r", "u", owner="uid-of-an-older-set"), False),
        (partial_object("r", "u", deletionTimestamp=rfc3339(NOW)), False),
    ],
)
def test_pods_are_created_once_binding_exists(binding, granted):
    assert has_rbac(the_set(), binding) == granted


def test_rbac_deleted_with_set_and_foreign_objects_kept():
    mixed = replace(COMPLETE, role=partial_object("r", "u", owner="uid-of-another"))
    deletes = delete_rbac("uid-set", mixed)
    assert [(delete.target.kind, delete.uid) for delete in deletes] == [
        ("ServiceAccount", "uid-account"),
        ("RoleBinding", "uid-binding"),
    ]
    ending = the_set()
    metadata = replace(
        ending.metadata, finalizers=("grove.io/podcliqueset.grove.io",), deletion_timestamp="x"
    )
    owned_objects = OwnedObjects(services=(part(Service, "service", "set"),), access=mixed)
    plan = plan_deletion(replace(ending, metadata=metadata), owned_objects, NOW)
    assert words(plan.intents) == [
        "patch Service",
        "delete Service",
        "delete ServiceAccount",
        "delete RoleBinding",
    ]
    (release,) = plan_deletion(replace(ending, metadata=metadata), OwnedObjects(), NOW).intents
    assert release.body["metadata"]["finalizers"] == []


def test_terminating_objects_are_not_deleted_again():
    leaving = replace(COMPLETE, account=partial_object("wl", "uid-account", deletionTimestamp=rfc3339(NOW)))
    assert [delete.target.kind for delete in delete_rbac("uid-set", leaving)] == ["Role", "RoleBinding"]


def test_set_plan_creates_rbac_beside_the_finalizer():
    assert [type(intent) for intent in plan_set(SetSnapshot(the_set(), {}), NOW).intents] == [Patch]
    plan = plan_set(SetSnapshot(the_set(), {}, access=RbacObjects()), NOW)
    assert [type(intent) for intent in plan.intents] == [Patch, Create, Create, Create, Create]


def test_crash_at_any_write_is_completed_by_next_plan():
    """After any prefix of the writes, in any order that dependencies allow, the next plan completes them."""
    account, role = partial_object("wl", "uid-account", created=NOW), ROLE
    for some in (RbacObjects(), RbacObjects(account), RbacObjects(None, role), RbacObjects(account, role)):
        left = words(plan_rbac(the_set(), some, NOW))
        assert left[-1] == "create RoleBinding"
        assert "create Secret" in left
