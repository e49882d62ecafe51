"""Which domain each clique requires: by name (X), by MNNVL group, automatically (CD3, I1), or none."""

from __future__ import annotations

import pytest

from grove.fabrics.provider import Policy, Scope
from grove.fabrics.registry import Providers
from grove.fabrics.requirements import DomainRequirement, Mode, domain_requirements
from tests.fabrics.builders import BOTH, a_set, clique, container

CPU = container()
GROUP = {"name": "model", "cliqueNames": ["leader", "worker"], "replicas": 2, "minAvailable": 1}


def domains(workload, replica=0, group_replica=0, providers=BOTH):
    """The domains of each clique in one replica."""
    return {
        name: [requirement.name(replica, group_replica) for requirement in required]
        for name, required in domain_requirements(workload, providers).items()
    }


def test_auto_gives_one_domain_per_replica_to_gpu_cliques():
    workload = a_set(
        clique("router", CPU), clique("leader"), clique("worker"), groups=[GROUP], auto="enabled"
    )
    assert domains(workload) == {"leader": ["inference-0"], "worker": ["inference-0"]}
    assert domains(workload, 1, group_replica=1) == {"leader": ["inference-1"], "worker": ["inference-1"]}
    (requirement,) = domain_requirements(workload, BOTH)["worker"]
    assert (requirement.mode, requirement.policy) == (Mode.AUTO, Policy.ACCELERATED_ONLY)


@pytest.mark.parametrize(
    "workload",
    [
        a_set(clique("worker")),
        a_set(clique("worker"), auto="disabled"),
        a_set(clique("worker"), auto="true"),
        a_set(clique("worker", CPU), auto="enabled"),
        a_set(clique("worker"), group="none", auto="enabled"),
        a_set(clique("worker", group="none"), clique("other"), auto="enabled"),
        a_set(clique("worker", CPU), group="a"),
    ],
)
def test_cliques_without_domain(workload):
    """O2 created before the feature, O3 opted out, CD3 no GPU; a group on any layer disables automation."""
    assert domains(workload) == {}


def test_without_providers_no_clique_has_a_domain():
    assert domains(a_set(clique("worker"), auto="enabled"), providers=Providers()) == {}


def test_mnnvl_group_of_nearest_layer_applies():
    workload = a_set(
        clique("router"),
        clique("leader", group="near"),
        clique("worker"),
        clique("out", group="none"),
        groups=[{**GROUP, "annotations": {"grove.io/mnnvl-group": "mid"}}],
        group="far",
    )
    assert domains(workload, 1) == {
        "router": ["inference-1-far"],
        "leader": ["inference-1-near"],
        "worker": ["inference-1-mid"],
    }


@pytest.mark.parametrize(
    ("scope", "name"),
    [
        ({}, "team"),
        ({"scope": "shared"}, "team"),
        ({"scope": "replica"}, "team-3"),
        ({"scope": "scaling-group-replica"}, "team-3-1"),
    ],
)
def test_x2_x3_named_domain_depends_on_scope(scope, name):
    workload = a_set(clique("a", computedomain="team", **scope), clique("b"))
    assert domains(workload, 3, 1) == {"a": [name]}


def test_x4_named_domain_needs_no_gpus():
    workload = a_set(clique("a", CPU, computedomain="team"), auto="disabled")
    (requirement,) = domain_requirements(workload, BOTH)["a"]
    assert (requirement.mode, requirement.policy) == (Mode.EXPLICIT, Policy.ACCELERATED_OR_ALL)


def test_requirements_are_sorted_by_vendor():
    workload = a_set(clique("a", computedomain="team", fabric="isle"), clique("b", fabric="isle"))
    assert domains(workload) == {"a": ["isle", "team"], "b": ["isle"]}
    workload = a_set({**clique("a"), "annotations": {"amd.com/fabric": "x"}})
    assert domains(workload) == {}


def test_named_domain_takes_precedence_over_auto():
    workload = a_set(clique("a", fabric="isle"), clique("b", computedomain="team"), auto="enabled")
    assert domains(workload) == {"a": ["isle", "inference-0"], "b": ["team"]}


def named(base, scope, vendor="nvidia"):
    return DomainRequirement(vendor, Mode.EXPLICIT, Scope(scope), base)


@pytest.mark.parametrize(
    ("one", "name_conflicts"),
    [
        (named("t-0", "shared"), [named("t", "replica")]),
        (named("t-10-2", "shared"), [named("t-10", "replica"), named("t", "scaling-group-replica")]),
        (named("t-1", "replica"), [named("t", "scaling-group-replica")]),
        (named("t", "shared"), []),
        (named("t", "replica"), []),
        (named("t-00", "shared"), []),
        (named("t-x", "shared"), []),
        (named("t-1", "scaling-group-replica"), []),
    ],
)
def test_v8_conflicting_domain_names_are_found(one, name_conflicts):
    assert list(one.name_conflicts()) == name_conflicts
    places = [(replica, member) for replica in range(11) for member in range(3)]
    for other in name_conflicts:
        assert {one.name(*place) for place in places} & {other.name(*place) for place in places}
