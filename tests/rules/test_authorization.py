"""Who may touch what the operator manages."""

from __future__ import annotations

import pytest

from grove.api.naming import labels
from grove.rules.authorization import authorize, parent_name
from grove.rules.model import ManagedObjectRequest, ParentSet
from tests.rules.builders import FACTS

OURS = {labels.PART_OF: "app"}
OPERATOR, (EXEMPT,) = FACTS.operator_user, FACTS.exempt_users
GUARDED = ParentSet("app")
OPEN = ParentSet("app", {"grove.io/disable-managed-resource-protection": "true"})
HALF_OPEN = ParentSet("app", {"grove.io/disable-managed-resource-protection": "yes"})


def request(operation, user="jane", resource="podcliques", carried=OURS):
    sides = {"CREATE": {"new_labels": carried}, "DELETE": {"old_labels": carried}}
    both = {"old_labels": carried, "new_labels": {}}
    return ManagedObjectRequest(operation, resource, user, "ns", "app-0-a", **sides.get(operation, both))


@pytest.mark.parametrize("operation", ["CREATE", "UPDATE", "DELETE"])
@pytest.mark.parametrize(
    ("user", "parent", "allowed"),
    [
        (OPERATOR, GUARDED, True),
        (EXEMPT, GUARDED, True),
        ("jane", GUARDED, False),
        ("", GUARDED, False),
        ("jane", HALF_OPEN, False),
        ("jane", OPEN, True),
        ("jane", None, True),
    ],
)
def test_who_may_touch_a_clique(operation, user, parent, allowed):
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
def test_pods_may_be_deleted_by_anybody(operation, resource, allowed):
    assert authorize(request(operation, resource=resource), GUARDED, FACTS).allowed is allowed


@pytest.mark.parametrize(
    ("operation", "deed"), [("CREATE", "created"), ("UPDATE", "changed"), ("DELETE", "deleted")]
)
def test_a_refusal_says_what_to_do_instead(operation, deed):
    assert authorize(request(operation), GUARDED, FACTS).reason == (
        f"podcliques/app-0-a belongs to PodCliqueSet app and can only be {deed} by the Grove operator: "
        "change the PodCliqueSet instead, or annotate it with "
        'grove.io/disable-managed-resource-protection: "true"'
    )


def test_nobody_frees_an_object_by_relabelling_it():
    assert parent_name(request("UPDATE")) == "app"
    assert parent_name(request("CREATE")) == "app"
    assert not authorize(request("UPDATE"), GUARDED, FACTS).allowed


def test_what_belongs_to_no_set_passes_with_a_warning():
    stray = authorize(request("UPDATE", carried={}), None, FACTS)
    assert stray.allowed
    assert stray.warnings == (
        "podcliques/app-0-a has no label app.kubernetes.io/part-of: it is not protected",
    )
    orphan = authorize(request("DELETE"), None, FACTS)
    assert orphan.allowed
    assert orphan.warnings == ("PodCliqueSet app of podcliques/app-0-a does not exist: it is not protected",)
