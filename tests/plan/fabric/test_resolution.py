"""Which domains a set requires, and their states: by what exists under their names."""

from __future__ import annotations

from typing import Any

import pytest

from grove.api.meta import ObjectMeta, OwnerReference
from grove.fabrics.membership import membership_in
from grove.fabrics.provider import Domain
from grove.fabrics.requirements import domain_requirements
from grove.fabrics.resolved import DomainState
from grove.plan.fabric.resolution import ObservedDomain, resolve, resolve_replica, resolve_set
from tests.fabrics.builders import BOTH, a_set, clique

NVIDIA = BOTH.of("nvidia")
AUTO = a_set(clique("worker"), auto="enabled")
NAMED = a_set(clique("worker", computedomain="team"))
MANAGED = {
    "app.kubernetes.io/managed-by": "grove-operator",
    "app.kubernetes.io/component": "pcs-computedomain",
    "app.kubernetes.io/part-of": "inference",
}
EXPLICIT = {**MANAGED, "grove.io/computedomain-mode": "explicit"}
DELETED_AT = "2026-01-01T00:00:00Z"
OWN = OwnerReference("grove.io/v1alpha1", "PodCliqueSet", "inference", "uid-inference", True)
OTHER = OwnerReference("grove.io/v1alpha1", "PodCliqueSet", "other", "uid-other", True)


def a_domain(
    labels: dict[str, str], *owners: OwnerReference, deleted: bool = False, template: str = ""
) -> Domain:
    deleted_at = DELETED_AT if deleted else None
    meta = ObjectMeta("d", uid="d1", labels=labels, owner_references=owners, deletion_timestamp=deleted_at)
    return Domain(meta, {"channel": {"resourceClaimTemplate": {"name": template}}} if template else {})


def state(workload: Any, name: str, **observed: Any) -> DomainState:
    membership = membership_in(workload, BOTH, "nvidia", name, lambda *_: 1)
    assert membership is not None
    return resolve(workload, NVIDIA, name, membership, ObservedDomain(**observed)).state


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (None, DomainState.MISSING),
        (a_domain(MANAGED, OWN), DomainState.USABLE),
        (a_domain(MANAGED), DomainState.NOT_OWNED_YET),
        (a_domain(MANAGED, OTHER), DomainState.CONFLICT),
        (a_domain(EXPLICIT, OWN), DomainState.CONFLICT),
        (a_domain({}), DomainState.CONFLICT),
        (a_domain(MANAGED, OWN, deleted=True), DomainState.TERMINATING),
        (a_domain({}, deleted=True), DomainState.TERMINATING),
    ],
)
def test_automatic_domain_is_for_its_controller(found: Domain | None, expected: DomainState) -> None:
    assert state(AUTO, "inference-0", found=found) is expected


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (None, DomainState.MISSING),
        (a_domain(EXPLICIT, OTHER, OWN), DomainState.USABLE),
        (a_domain(EXPLICIT, OTHER), DomainState.NOT_OWNED_YET),
        (a_domain({}), DomainState.USABLE),
        (a_domain(MANAGED, OWN), DomainState.CONFLICT),
        (a_domain(EXPLICIT, OWN, deleted=True), DomainState.TERMINATING),
        (a_domain({}, deleted=True), DomainState.TERMINATING),
    ],
)
def test_named_domain_is_for_all_its_owners(found: Domain | None, expected: DomainState) -> None:
    assert state(NAMED, "team", found=found) is expected


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        (ObjectMeta(labels={"resource.nvidia.com/computeDomain": "d1"}), DomainState.USABLE),
        (ObjectMeta(), DomainState.TEMPLATE_CONFLICT),
        (ObjectMeta(deletion_timestamp=DELETED_AT), DomainState.NOT_OWNED_YET),
    ],
)
def test_template_of_another_owner_makes_domain_unusable(template: ObjectMeta, expected: DomainState) -> None:
    assert state(AUTO, "inference-0", found=a_domain(MANAGED, OWN), template=template) is expected
    missing = state(AUTO, "inference-0", found=a_domain(MANAGED), template=template)
    assert missing is DomainState.NOT_OWNED_YET, "the state of the domain itself comes first"


def test_kind_that_is_not_served_is_reported_as_such() -> None:
    assert state(AUTO, "inference-0", served=False) is DomainState.NOT_SERVED
    assert state(AUTO, "inference-0", served=False, outdated=True) is DomainState.OUTDATED


def test_group_scope_outside_a_group_has_a_state_of_its_own() -> None:
    lonely = a_set(clique("worker", computedomain="two", scope="scaling-group-replica"))
    requirements = domain_requirements(lonely, BOTH)
    found = resolve_replica(lonely, requirements, BOTH, 0, lambda _: (), lambda *_: ObservedDomain())
    (domain,) = found["worker"][0]
    assert domain.state is DomainState.NO_GROUP


def template_name(found: Domain | None) -> str:
    (domain, *_) = resolve_set(AUTO, BOTH, lambda *_: 1, lambda *_: ObservedDomain(found=found))
    return domain.template


def test_template_name_is_of_found_domain_unless_it_conflicts() -> None:
    assert template_name(a_domain(MANAGED, OWN, template="channels")) == "channels"
    assert template_name(None) == template_name(a_domain({}, template="channels")) == "inference-0"


GROUPED = a_set(
    clique("alone", computedomain="one"),
    clique("leader", computedomain="two", scope="scaling-group-replica"),
    clique("worker", computedomain="two", scope="scaling-group-replica"),
    clique("plain"),
    groups=[{"name": "g", "cliqueNames": ["leader", "worker"], "replicas": 2}],
)


def test_replica_has_domains_by_clique_and_group_replica() -> None:
    seen: list[str] = []

    def observe(_: object, name: str) -> ObservedDomain:
        seen.append(name)
        return ObservedDomain()

    requirements = domain_requirements(GROUPED, BOTH)
    found = resolve_replica(GROUPED, requirements, BOTH, 1, lambda _: (0, 2), observe)
    assert {
        name: {index: [domain.name for domain in domains] for index, domains in members.items()}
        for name, members in found.items()
    } == {
        "alone": {0: ["one"]},
        "leader": {0: ["two-1-0"], 2: ["two-1-2"]},
        "worker": {0: ["two-1-0"], 2: ["two-1-2"]},
    }
    assert sorted(seen) == ["one", "two-1-0", "two-1-2"], "each domain is looked up once"


def test_set_has_each_domain_once_with_its_replicas() -> None:
    found = resolve_set(GROUPED, BOTH, lambda replica, _: replica + 1, lambda *_: ObservedDomain())
    assert {domain.name: domain.membership.replicas for domain in found} == {
        "one": (0, 1),
        "two-0-0": (0,),
        "two-1-0": (1,),
        "two-1-1": (1,),
    }
