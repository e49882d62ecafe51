"""Which object reports an error, and that equal errors are merged."""

from __future__ import annotations

import pytest

from grove.api.intents import Create, Delete, ObjectRef, Patch, Target
from grove.api.meta import ObjectMeta
from grove.api.types.podclique import PodCliqueStatus
from grove.api.types.podcliquescalinggroup import PodCliqueScalingGroupStatus
from grove.api.types.podcliqueset import PodCliqueSetStatus
from grove.kube.executor.name_conflict import name_conflict_error
from grove.kube.executor.outcome import IntentState, Outcome, Result
from grove.operator.engine.errors import PassErrors, collect_errors, complete_status, unfinished
from grove.plan.model import StatusUpdate, UserError

CLIQUE_REF = ObjectRef("grove.io/v1alpha1", "PodClique", "w-0-a", "default")
GROUP_REF = ObjectRef("grove.io/v1alpha1", "PodCliqueScalingGroup", "w-0-x", "default")


def rejected_pod(pod: str, why: str) -> Result:
    intent = Create(Target("v1", "Pod", pod, "default"), {}, regarding=CLIQUE_REF)
    return Result(intent, IntentState.FAILED, pod, error=RuntimeError(f'pods "{pod}" is forbidden: {why}'))


def test_same_pod_errors_of_clique_are_one_error():
    found = collect_errors(
        Outcome((rejected_pod("w-0-a-bcdfg", "quota"), rejected_pod("w-0-a-hjklm", "quota"))), now=0.0
    )
    (error,) = found.of_children["PodClique", "w-0-a"]
    assert error.code == "ERR_CREATE_POD"
    assert 'pods "w-0-a-*" is forbidden: quota' in error.description
    assert not found.of_set


def test_different_causes_are_different_errors():
    found = collect_errors(
        Outcome((rejected_pod("w-0-a-bcdfg", "quota"), rejected_pod("w-0-a-hjklm", "policy"))), now=0.0
    )
    assert len(found.of_children["PodClique", "w-0-a"]) == 2


def rejected_claim(name: str, why: str, owner: ObjectRef | None = CLIQUE_REF) -> Result:
    target = Target("resource.k8s.io/v1", "ResourceClaim", name, "default")
    intent = Create(target, {}, regarding=owner)
    return Result(
        intent, IntentState.FAILED, name, error=RuntimeError(f'claims "{name}" is forbidden: {why}')
    )


def test_same_claim_errors_name_first_claim():
    found = collect_errors(
        Outcome((rejected_claim("w-0-a-0-t", "quota"), rejected_claim("w-0-a-1-t", "quota"))), now=0.0
    )
    (error,) = found.of_children["PodClique", "w-0-a"]
    assert error.code == "ERR_SYNC_PCLQ_RESOURCE_CLAIM"
    assert 'could not create ResourceClaim default/w-0-a-0-t, cause: claims "w-0-a-0-t"' in error.description
    assert not found.of_set


def test_claim_error_is_reported_on_claim_owner():
    of_set, of_group = (rejected_claim("w-0-t", "quota", owner) for owner in (None, GROUP_REF))
    found = collect_errors(Outcome((of_set, of_group)), now=0.0)
    assert [error.code for error in found.of_set] == ["ERR_SYNC_PCS_RESOURCE_CLAIM"]
    (error,) = found.of_children["PodCliqueScalingGroup", "w-0-x"]
    assert error.code == "ERR_SYNC_PCSG_RESOURCE_CLAIM"


def test_user_error_is_reported_on_named_object_or_set():
    of_group = UserError("CODE", "three", GROUP_REF)
    user_errors = (UserError("CODE", "one", CLIQUE_REF), UserError("CODE", "two"), of_group)
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
        (Delete(Target("v1", "Pod", "w-0-a-bcdfg", "default"), regarding=CLIQUE_REF), "ERR_DELETE_POD"),
        (Create(Target("v1", "ServiceAccount", "w", "default"), {}), "ERR_CREATE_SERVICEACCOUNT"),
    ],
)
def test_failed_write_has_upstream_error_code(intent, code):
    (error,) = collect_errors(
        Outcome((Result(intent, IntentState.FAILED, error=RuntimeError("no")),)), now=0.0
    ).of_set
    assert error.code == code
    assert f"Code: {code}] message: could not" in error.description
    assert error.description.endswith(", cause: no")


@pytest.mark.parametrize(
    ("fewest", "refused", "hint"),
    [(0, "spec.minReplicas", True), (0, "spec.metrics", False), (1, "spec.minReplicas", False)],
)
@pytest.mark.parametrize("write", [Create, Patch])
def test_refused_minimum_of_zero_names_feature_gate(write, fewest, refused, hint):
    target = Target("autoscaling/v2", "HorizontalPodAutoscaler", "w", "default")
    result = Result(
        write(target, {"spec": {"minReplicas": fewest}}),
        IntentState.FAILED,
        error=RuntimeError(f"{refused}: Invalid value"),
    )
    (error,) = collect_errors(Outcome((result,)), now=0.0).of_set
    assert f"{refused}: Invalid value" in error.description
    assert ("feature gate HPAScaleToZero" in error.description) == hint


def test_name_conflict_is_prefixed_in_cause():
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
        ("PodClique", "w-0-b", CLIQUE, (DONE, rejected_pod("w-0-a-bcdfg", "quota")), 2),
        ("PodClique", "w-0-a", CLIQUE, (DONE, rejected_pod("w-0-a-bcdfg", "quota")), 1),
        ("PodClique", "w-0-b", CLIQUE, (SKIPPED, rejected_pod("w-0-a-bcdfg", "quota")), 1),
        ("PodCliqueScalingGroup", "w-0-x", GROUP, (rejected_pod("w-0-x-0-a-bcdfg", "quota"),), 2),
        ("PodCliqueScalingGroup", "w-0-x", GROUP, (rejected_claim("t", "quota"),), 2),
        (
            "PodCliqueScalingGroup",
            "w-0-x",
            GROUP,
            (rejected_claim("t", "quota", GROUP_REF),),
            1,
        ),
    ],
)
def test_failed_write_keeps_observed_generation_of_owner(kind, name, status, results, observed):
    status_update = StatusUpdate(
        Target("grove.io/v1alpha1", kind, name, "default"), status, status, observed_generation=2
    )
    assert (
        complete_status(status_update, PassErrors(), unfinished(Outcome(results))).desired.observed_generation
        == observed
    )


@pytest.mark.parametrize(("results", "observed"), [((), 2), ((DONE,), 2), ((SKIPPED,), 1)])
def test_set_generation_is_observed_after_all_writes(results, observed):
    before, after = PodCliqueSetStatus(observed_generation=1), PodCliqueSetStatus(observed_generation=2)
    status_update = StatusUpdate(Target("grove.io/v1alpha1", "PodCliqueSet", "w", "default"), before, after)
    assert (
        complete_status(status_update, PassErrors(), unfinished(Outcome(results))).desired.observed_generation
        == observed
    )
