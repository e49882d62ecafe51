"""Authorization of requests for objects that the operator manages."""

from __future__ import annotations

import pytest

from grove.api.naming import labels
from grove.rules.authorization import authorize, parent_name
from grove.rules.model import ManagedObjectRequest, ParentSet
from tests.rules.builders import FACTS

PART_OF_APP = {labels.PART_OF: "app"}
OPERATOR, (EXEMPT,) = FACTS.operator_user, FACTS.exempt_users
PROTECTED = ParentSet("app")
UNPROTECTED = ParentSet("app", {"grove.io/disable-managed-resource-protection": "true"})
WRONG_VALUE = ParentSet("app", {"grove.io/disable-managed-resource-protection": "yes"})


def request(operation, user="jane", resource="podcliques", carried=PART_OF_APP):
    sides = {"CREATE": {"new_labels": carried}, "DELETE": {"old_labels": carried}}
    both = {"old_labels": carried, "new_labels": {}}
    return ManagedObjectRequest(operation, resource, user, "ns", "app-0-a", **sides.get(operation, both))


@pytest.mark.parametrize("operation", ["CREATE", "UPDATE", "DELETE"])
@pytest.mark.parametrize(
    ("user", "parent", "allowed"),
    [
        (OPERATOR, PROTECTED, True),
        (EXEMPT, PROTECTED, True),
        ("jane", PROTECTED, False),
        ("", PROTECTED, False),
        ("jane", WRONG_VALUE, False),
        ("jane", UNPROTECTED, True),
        ("jane", None, True),
    ],
)
def test_clique_request_allowed_by_user_and_set(operation, user, parent, allowed):
    assert authorize(request(operation, user), parent, FACTS).allowed is allowed


@pytest.mark.parametrize(
    ("operation", "resource", "allowed"),
    [
        ("DELETE", "pods", True),
        ("UPDATE", "pods", False),
        ("DELETE", "services", False),
        ("DELETE", "podgangs", False),
        ("CONNECT", "pods", True),
    ],
)
def test_any_user_may_delete_pods_only(operation, resource, allowed):
    assert authorize(request(operation, resource=resource), PROTECTED, FACTS).allowed is allowed


@pytest.mark.parametrize(
    ("operation", "verb"), [("CREATE", "created"), ("UPDATE", "changed"), ("DELETE", "deleted")]
)
def test_denial_names_the_set_and_the_remedy(operation, verb):
    assert authorize(request(operation), PROTECTED, FACTS).reason == (
        f"podcliques/app-0-a belongs to PodCliqueSet app and can only be {verb} by the Grove operator: "
        "change the PodCliqueSet instead, or annotate it with "
        'grove.io/disable-managed-resource-protection: "true"'
    )


def test_removing_the_label_keeps_the_protection():
    assert parent_name(request("UPDATE")) == "app"
    assert parent_name(request("CREATE")) == "app"
    assert not authorize(request("UPDATE"), PROTECTED, FACTS).allowed


def test_object_without_set_is_allowed_with_a_warning():
    unlabelled = authorize(request("UPDATE", carried={}), None, FACTS)
    assert unlabelled.allowed
    assert unlabelled.warnings == (
        "podcliques/app-0-a is not protected from changes: it has no label app.kubernetes.io/part-of with "
        "the name of its PodCliqueSet",
    )
    orphan = authorize(request("DELETE"), None, FACTS)
    assert orphan.allowed
    assert orphan.warnings == (
        "podcliques/app-0-a is not protected from changes: PodCliqueSet app does not exist",
    )
