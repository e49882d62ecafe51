"""Whose error it is, and that one trouble is told once."""

from __future__ import annotations

import pytest

from grove.api.intents import Create, Delete, Patch, Target
from grove.api.meta import ObjectMeta
from grove.api.types.podclique import PodCliqueStatus
from grove.api.types.podcliquescalinggroup import PodCliqueScalingGroupStatus
from grove.api.types.podcliqueset import PodCliqueSetStatus
from grove.kube.executor.name_conflict import name_conflict_error
from grove.kube.executor.outcome import IntentState, Outcome, Result
from grove.operator.engine.errors import PassErrors, collect_errors, complete_status, unfinished
from grove.plan.model import StatusUpdate, UserError


def refused(pod: str, why: str) -> Result:
    metadata = {"name": pod, "ownerReferences": [{"name": "w-0-a"}]}
    intent = Create(Target("v1", "Pod", pod, "default"), {"metadata": metadata})
    return Result(intent, IntentState.FAILED, pod, error=RuntimeError(f'pods "{pod}" is forbidden: {why}'))


def test_what_all_pods_of_a_clique_are_refused_for_is_one_error_of_the_clique():
    found = collect_errors(
        Outcome((refused("w-0-a-bcdfg", "quota"), refused("w-0-a-hjklm", "quota"))), now=0.0
    )
    (error,) = found.of_children["PodClique", "w-0-a"]
    assert error.code == "ERR_CREATE_POD"
    assert 'pods "w-0-a-*" is forbidden: quota' in error.description
    assert not found.of_set


def test_different_reasons_are_different_errors():
    found = collect_errors(
        Outcome((refused("w-0-a-bcdfg", "quota"), refused("w-0-a-hjklm", "policy"))), now=0.0
    )
    assert len(found.of_children["PodClique", "w-0-a"]) == 2


def unclaimed(name: str, why: str, kind: str = "PodClique", owner: str = "w-0-a") -> Result:
    metadata = {"name": name, "ownerReferences": [{"kind": kind, "name": owner}]}
    intent = Create(Target("resource.k8s.io/v1", "ResourceClaim", name, "default"), {"metadata": metadata})
    return Result(
        intent, IntentState.FAILED, name, error=RuntimeError(f'claims "{name}" is forbidden: {why}')
    )


def test_of_many_claims_that_a_clique_is_refused_the_first_is_named():
    found = collect_errors(
        Outcome((unclaimed("w-0-a-0-t", "quota"), unclaimed("w-0-a-1-t", "quota"))), now=0.0
    )
    (error,) = found.of_children["PodClique", "w-0-a"]
    assert error.code == "ERR_SYNC_PCLQ_RESOURCE_CLAIM"
    assert 'could not create ResourceClaim default/w-0-a-0-t, cause: claims "w-0-a-0-t"' in error.description
    assert not found.of_set


def test_a_groups_claims_are_told_on_the_group_and_the_sets_on_the_set():
    kinds = ("PodCliqueSet", "PodCliqueScalingGroup")
    of_set, of_group = (unclaimed("w-0-t", "quota", kind, "w-0-x") for kind in kinds)
    found = collect_errors(Outcome((of_set, of_group)), now=0.0)
    assert [error.code for error in found.of_set] == ["ERR_SYNC_PCS_RESOURCE_CLAIM"]
    (error,) = found.of_children["PodCliqueScalingGroup", "w-0-x"]
    assert error.code == "ERR_SYNC_PCSG_RESOURCE_CLAIM"


def test_a_complaint_is_told_on_the_part_that_it_names_or_on_the_set():
    of_group = UserError("", "CODE", "three", group="w-0-x")
    user_errors = (UserError("w-0-a", "CODE", "one"), UserError("", "CODE", "two"), of_group)
    found = collect_errors(Outcome(()), 0.0, user_errors)
    (on_clique,), (on_set,) = found.of_children["PodClique", "w-0-a"], found.of_set
    (on_group,) = found.of_children["PodCliqueScalingGroup", "w-0-x"]
    assert on_group.description.endswith("message: three")
    assert on_clique.description.endswith("message: one")
    assert on_set.description.endswith("message: two")


@pytest.mark.parametrize(
    ("intent", "code"),
    [
        (Create(Target("v1", "Service", "w-0", "default"), {}), "ERR_SYNC_PODCLIQUESET_SERVICE"),
        (Create(Target("grove.io/v1alpha1", "PodClique", "w-0-a", "default"), {}), "ERR_SYNC_PODCLIQUE"),
        (
            Patch(Target("scheduler.grove.io/v1alpha1", "PodGang", "w-0", "default"), {}),
            "ERR_CREATE_OR_PATCH_PODGANG",
        ),
        (Create(Target("autoscaling/v2", "HorizontalPodAutoscaler", "w", "default"), {}), "ERR_SYNC_HPA"),
        (
            Patch(Target("v1", "Pod", "w-0-a-bcdfg", "default"), {"spec": {"schedulingGates": None}}),
            "ERR_REMOVE_POD_SCHEDULING_GATE",
        ),
        (Patch(Target("v1", "Pod", "w-0-a-bcdfg", "default"), {"metadata": {}}), "ERR_SYNC_POD"),
        (Delete(Target("v1", "Pod", "w-0-a-bcdfg", "default"), uid="1"), "ERR_DELETE_POD"),
        (Create(Target("v1", "ServiceAccount", "w", "default"), {}), "ERR_CREATE_SERVICEACCOUNT"),
    ],
)
def test_errors_have_the_codes_that_clients_know(intent, code):
    (error,) = collect_errors(
        Outcome((Result(intent, IntentState.FAILED, error=RuntimeError("no")),)), now=0.0
    ).of_set
    assert error.code == code
    assert f"Code: {code}] message: could not" in error.description
    assert error.description.endswith(", cause: no")


def test_a_name_that_is_taken_is_called_so_for_programs_too():
    intent = Create(Target("v1", "Service", "w-0", "default"), {})
    taken = name_conflict_error("create Service w-0", ObjectMeta(name="w-0"))
    (error,) = collect_errors(
        Outcome((Result(intent, IntentState.FAILED, "w-0", error=taken),)), now=0.0
    ).of_set
    assert error.code == "ERR_SYNC_PODCLIQUESET_SERVICE"
    assert ", cause: NameConflict: create Service w-0: the name is taken by" in error.description


GANG = Patch(Target("scheduler.grove.io/v1alpha1", "PodGang", "w-0", "default"), {})
DONE, SKIPPED = Result(GANG, IntentState.DONE), Result(GANG, IntentState.SKIPPED)
CLIQUE, GROUP = PodCliqueStatus(observed_generation=1), PodCliqueScalingGroupStatus(observed_generation=1)


@pytest.mark.parametrize(
    ("kind", "name", "status", "results", "observed"),
    [
        ("PodClique", "w-0-b", CLIQUE, (), 2),
        ("PodClique", "w-0-b", CLIQUE, (DONE, refused("w-0-a-bcdfg", "quota")), 2),
        ("PodClique", "w-0-a", CLIQUE, (DONE, refused("w-0-a-bcdfg", "quota")), 1),
        ("PodClique", "w-0-b", CLIQUE, (SKIPPED, refused("w-0-a-bcdfg", "quota")), 1),
        ("PodCliqueScalingGroup", "w-0-x", GROUP, (refused("w-0-x-0-a-bcdfg", "quota"),), 2),
        ("PodCliqueScalingGroup", "w-0-x", GROUP, (unclaimed("t", "quota"),), 2),
        (
            "PodCliqueScalingGroup",
            "w-0-x",
            GROUP,
            (unclaimed("t", "quota", "PodCliqueScalingGroup", "w-0-x"),),
            1,
        ),
    ],
)
def test_a_generation_is_observed_by_whom_nothing_was_refused(kind, name, status, results, observed):
    status_update = StatusUpdate(
        Target("grove.io/v1alpha1", kind, name, "default"), status, status, observed_generation=2
    )
    assert (
        complete_status(status_update, PassErrors(), unfinished(Outcome(results))).desired.observed_generation
        == observed
    )


@pytest.mark.parametrize(("results", "observed"), [((), 2), ((DONE,), 2), ((SKIPPED,), 1)])
def test_a_set_has_observed_a_generation_when_all_of_its_own_writes_are_done(results, observed):
    before, after = PodCliqueSetStatus(observed_generation=1), PodCliqueSetStatus(observed_generation=2)
    status_update = StatusUpdate(Target("grove.io/v1alpha1", "PodCliqueSet", "w", "default"), before, after)
    assert (
        complete_status(status_update, PassErrors(), unfinished(Outcome(results))).desired.observed_generation
        == observed
    )
