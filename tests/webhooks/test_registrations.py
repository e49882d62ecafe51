"""What the API server is told: which requests come to us, and which must never depend on us."""

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
    made = configurations(ServiceAddress("grove-system"), **options)
    return {body["metadata"]["name"]: body["webhooks"][0] for body in made}


def conditions(webhook):
    return {each["name"]: each["expression"] for each in webhook["matchConditions"]}


def test_the_authorizer_is_asked_only_where_it_is_wanted():
    assert len(webhooks()) == 3
    assert set(webhooks(authorizer=True)) - set(webhooks()) == {AUTHORIZE.name}


@pytest.mark.parametrize("authorizer", [False, True])
def test_no_rule_says_all(authorizer):
    for webhook in webhooks(authorizer=authorizer).values():
        for rule in webhook["rules"]:
            said = {
                value
                for part in ("apiGroups", "apiVersions", "operations", "resources")
                for value in rule[part]
            }
            assert not any("*" in value or "/" in value for value in said)
            assert rule["scope"] != "*"


def test_dynamo_is_asked_about_only_where_it_is_wanted():
    added = {name: webhooks(dynamo=True)[name] for name in set(webhooks(dynamo=True)) - set(webhooks())}
    assert {webhook["clientConfig"]["service"]["path"] for webhook in added.values()} == {
        Path.DEFAULT_GRAPH,
        Path.VALIDATE_GRAPH,
    }
    for webhook in added.values():
        assert webhook["rules"][0]["apiVersions"] == ["v1beta1", "v1alpha1"]


def test_core_objects_are_asked_about_only_if_they_bear_our_label():
    for name, webhook in webhooks(authorizer=True).items():
        groups = {group for rule in webhook["rules"] for group in rule["apiGroups"]}
        if groups - {"grove.io"}:
            assert name == AUTHORIZE.name
            assert webhook["objectSelector"]["matchLabels"] == {
                "app.kubernetes.io/managed-by": "grove-operator"
            }


def test_nothing_of_the_operator_and_nothing_that_goes_depends_on_us():
    for name, webhook in webhooks(operator=OPERATOR, authorizer=True, dynamo=True).items():
        said = conditions(webhook)
        exempt = "oldObject == null || !has(oldObject.metadata.deletionTimestamp)"
        if name == AUTHORIZE.name:
            assert said["not-being-deleted"] == exempt
        else:
            changed = f"{exempt} || (object != null && object.spec != oldObject.spec)"
            assert said["not-being-deleted-or-spec-changed"] == changed
        assert said["not-by-the-operator"] == f'request.userInfo.username != "{OPERATOR}"'
        assert webhook["timeoutSeconds"] == 5


def test_exempt_users_are_kept_away_from_the_authorizer_alone():
    found = webhooks(authorizer=True, exempt=["a", "b"])
    said = {name for name, webhook in found.items() if "not-by-exempt-users" in conditions(webhook)}
    assert said == {AUTHORIZE.name}
    assert (
        conditions(found[AUTHORIZE.name])["not-by-exempt-users"]
        == '!(request.userInfo.username in ["a","b"])'
    )


def test_where_we_are_called():
    (defaulting, *_) = configurations(UrlAddress("https://127.0.0.1:9443"), ca_bundle=b"PEM")
    assert defaulting["webhooks"][0]["clientConfig"] == {
        "url": f"https://127.0.0.1:9443{Path.DEFAULT_SET}",
        "caBundle": base64.b64encode(b"PEM").decode(),
    }
    assert defaulting["webhooks"][0]["reinvocationPolicy"] == "IfNeeded"
    assert (
        webhooks()["podcliqueset-validating-webhook"]["clientConfig"]["service"]["path"] == Path.VALIDATE_SET
    )


def test_the_end_of_a_topology_is_commented_on_and_never_held_up():
    made = configurations(ServiceAddress("grove-system"), operator=OPERATOR, ca_bundle=b"PEM")
    (validating,) = (body for body in made if body["metadata"]["name"] == VALIDATE_TOPOLOGY.name)
    judging, commenting = validating["webhooks"]
    assert {op for rule in judging["rules"] for op in rule["operations"]} == {"CREATE", "UPDATE"}
    assert {op for rule in commenting["rules"] for op in rule["operations"]} == {"DELETE"}
    assert (judging["failurePolicy"], commenting["failurePolicy"]) == ("Fail", "Ignore")
    assert judging["clientConfig"] == commenting["clientConfig"]
