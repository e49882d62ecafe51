"""The webhook configurations: which requests are reviewed, and which must not depend on the operator."""

from __future__ import annotations

import base64

import pytest

from grove.webhooks.registrations import (
    AUTHORIZE,
    VALIDATE_TOPOLOGY,
    Path,
    ServiceAddress,
    UrlAddress,
    account,
    configurations,
)

OPERATOR = account("grove-system")


def webhooks(**options):
    bodies = configurations(ServiceAddress("grove-system"), **options)
    return {body["metadata"]["name"]: body["webhooks"][0] for body in bodies}


def conditions(webhook):
    return {each["name"]: each["expression"] for each in webhook["matchConditions"]}


def test_authorizer_webhook_only_if_enabled():
    assert len(webhooks()) == 3
    assert set(webhooks(authorizer=True)) - set(webhooks()) == {AUTHORIZE.name}


@pytest.mark.parametrize("authorizer", [False, True])
def test_rules_have_no_wildcards(authorizer):
    for webhook in webhooks(authorizer=authorizer).values():
        for rule in webhook["rules"]:
            values = {
                value
                for part in ("apiGroups", "apiVersions", "operations", "resources")
                for value in rule[part]
            }
            assert not any("*" in value or "/" in value for value in values)
            assert rule["scope"] != "*"


def test_graph_webhooks_only_if_dynamo_enabled():
    added = {name: webhooks(dynamo=True)[name] for name in set(webhooks(dynamo=True)) - set(webhooks())}
    assert {webhook["clientConfig"]["service"]["path"] for webhook in added.values()} == {
        Path.DEFAULT_GRAPH,
        Path.VALIDATE_GRAPH,
    }
    for webhook in added.values():
        assert webhook["rules"][0]["apiVersions"] == ["v1beta1", "v1alpha1"]


def test_core_objects_are_selected_by_managed_by_label():
    for name, webhook in webhooks(authorizer=True).items():
        groups = {group for rule in webhook["rules"] for group in rule["apiGroups"]}
        if groups - {"grove.io"}:
            assert name == AUTHORIZE.name
            assert webhook["objectSelector"]["matchLabels"] == {
                "app.kubernetes.io/managed-by": "grove-operator"
            }


def test_operator_and_terminating_objects_are_exempt():
    for name, webhook in webhooks(operator=OPERATOR, authorizer=True, dynamo=True).items():
        found = conditions(webhook)
        exempt = "oldObject == null || !has(oldObject.metadata.deletionTimestamp)"
        if name == AUTHORIZE.name:
            assert found["not-being-deleted"] == exempt
        else:
            changed = f"{exempt} || (object != null && object.spec != oldObject.spec)"
            assert found["not-being-deleted-or-spec-changed"] == changed
        assert found["not-by-the-operator"] == f'request.userInfo.username != "{OPERATOR}"'
        assert webhook["timeoutSeconds"] == 5


def test_exempt_users_apply_to_authorizer_only():
    found = webhooks(authorizer=True, exempt=["a", "b"])
    exempting = {name for name, webhook in found.items() if "not-by-exempt-users" in conditions(webhook)}
    assert exempting == {AUTHORIZE.name}
    assert (
        conditions(found[AUTHORIZE.name])["not-by-exempt-users"]
        == '!(request.userInfo.username in ["a","b"])'
    )


def test_client_config_of_url_and_service():
    (defaulting, *_) = configurations(UrlAddress("https://127.0.0.1:9443"), ca_bundle=b"PEM")
    assert defaulting["webhooks"][0]["clientConfig"] == {
        "url": f"https://127.0.0.1:9443{Path.DEFAULT_SET}",
        "caBundle": base64.b64encode(b"PEM").decode(),
    }
    assert defaulting["webhooks"][0]["reinvocationPolicy"] == "IfNeeded"
    assert (
        webhooks()["podcliqueset-validating-webhook"]["clientConfig"]["service"]["path"] == Path.VALIDATE_SET
    )


def test_topology_deletion_webhook_ignores_failures():
    bodies = configurations(ServiceAddress("grove-system"), operator=OPERATOR, ca_bundle=b"PEM")
    (validating,) = (body for body in bodies if body["metadata"]["name"] == VALIDATE_TOPOLOGY.name)
    validation, deletion = validating["webhooks"]
    assert {op for rule in validation["rules"] for op in rule["operations"]} == {"CREATE", "UPDATE"}
    assert {op for rule in deletion["rules"] for op in rule["operations"]} == {"DELETE"}
    assert (validation["failurePolicy"], deletion["failurePolicy"]) == ("Fail", "Ignore")
    assert validation["clientConfig"] == deletion["clientConfig"]
