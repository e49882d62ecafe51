"""Messages about domains that cannot be used: each names the object and the remedy."""

from __future__ import annotations

import pytest

from grove.api.meta import ObjectMeta
from grove.fabrics.provider import Domain
from grove.fabrics.resolved import DomainState
from grove.plan.fabric.state import state_message
from tests.fabrics.builders import BOTH

OF_A_SET = {
    "app.kubernetes.io/managed-by": "grove-operator",
    "app.kubernetes.io/component": "pcs-computedomain",
    "app.kubernetes.io/part-of": "other",
}


def a_domain(labels: dict[str, str], *finalizers: str) -> Domain:
    return Domain(ObjectMeta("team", labels=labels, finalizers=finalizers))


@pytest.mark.parametrize(
    ("state", "found", "words"),
    [
        (DomainState.CONFLICT, a_domain({}), "belongs to another owner: delete it or rename the workload"),
        (
            DomainState.CONFLICT,
            a_domain(OF_A_SET),
            "team belongs to PodCliqueSet other: use another name for this set or its domain",
        ),
        (
            DomainState.TERMINATING,
            a_domain(OF_A_SET, "grove.io/x"),
            "is being deleted while it is needed",
        ),
        (
            DomainState.TERMINATING,
            a_domain({}, "example.com/a", "example.com/b"),
            "team, which is not managed by Grove, is being deleted: new pods wait until its finalizers "
            "(example.com/a, example.com/b) are removed by their owners, and another one is created then",
        ),
        (DomainState.TERMINATING, a_domain({}), "new pods wait until it is gone, and another one"),
        (DomainState.NOT_SERVED, None, "is not served: install the NVIDIA DRA driver"),
        (
            DomainState.OUTDATED,
            None,
            "computedomains.resource.nvidia.com does not serve v1beta1: install the NVIDIA DRA driver in a "
            "version that does",
        ),
        (
            DomainState.NO_GROUP,
            None,
            "the clique is in none: recreate the set with the clique in a group, or with "
            "nvidia.com/computedomain-scope: replica",
        ),
    ],
)
def test_message_names_cause_and_remedy(state: DomainState, found: Domain | None, words: str) -> None:
    assert words in state_message(state, BOTH.of("nvidia"), "team", found=found)
