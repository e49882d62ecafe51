"""What the entries of `status.lastErrors` mean."""

from __future__ import annotations

import pytest

from grove.api.error_codes import ErrorCode, Operation, describe
from grove.api.types.common import LastError
from grove.reasons.codes import ReasonCode as Code
from grove.reasons.errors import error_reason, error_reasons
from grove.reasons.model import ObjectName

CREATE = "POST pods"
FORBIDDEN = f'{CREATE}: pods "a" is forbidden'
POD = ErrorCode.CREATE_POD
ERRORS = [
    (POD, f'{FORBIDDEN}: exceeded quota: gpus (403 Forbidden)', Code.QUOTA_EXCEEDED),
    (POD, f'{FORBIDDEN}: failed quota: q: must specify cpu (403 Forbidden)',
     Code.QUOTA_EXCEEDED),
    (POD, f'{CREATE}: admission webhook "x" denied the request: no (400 BadRequest)',
     Code.ADMISSION_REFUSED),
    (POD, f'{FORBIDDEN}: violates PodSecurity "baseline" (403 Forbidden)',
     Code.ADMISSION_REFUSED),
    (POD, f'{FORBIDDEN}: no PriorityClass with name x was found (403 Forbidden)',
     Code.ADMISSION_REFUSED),
    (POD, f"{CREATE}: Pod is invalid: spec.containers[0].image: Required (422 Invalid)",
     Code.ADMISSION_REFUSED),
    (POD, f'{CREATE}: Internal error: failed calling webhook "x": no endpoints (500 InternalError)',
     Code.WEBHOOK_UNAVAILABLE),
    (POD, f'{CREATE}: pods is forbidden: User "u" cannot create resource "pods" (403 Forbidden)',
     Code.OPERATOR_FORBIDDEN),
    (POD, f"{CREATE}: etcd is slow (500 InternalError)", Code.WRITE_FAILED),
    (ErrorCode.SYNC_CLIQUE, "NameConflict: PodClique a exists", Code.NAME_CONFLICT),
    (ErrorCode.SYNC_SERVICE, "unable to create new content in namespace ns because it is being terminated",
     Code.NAMESPACE_TERMINATING),
    (ErrorCode.SYNC_SET_CLAIM, "exceeded quota: claims (403 Forbidden)", Code.QUOTA_EXCEEDED),
    (ErrorCode.SYNC_CLIQUE_CLAIM, "there is no ResourceClaimTemplate ns/a: create it", Code.CLAIM_MISSING),
    (ErrorCode.SYNC_COMPUTE_DOMAIN, "pods wait for ComputeDomain a: x is not served: install it",
     Code.COMPUTE_DOMAIN_CRD_MISSING),
    (ErrorCode.SYNC_COMPUTE_DOMAIN, "ComputeDomain a is being deleted while it is needed",
     Code.COMPUTE_DOMAIN_TERMINATING),
    (ErrorCode.SYNC_COMPUTE_DOMAIN, "ComputeDomain a belongs to another owner: delete it",
     Code.COMPUTE_DOMAIN_CONFLICT),
    (ErrorCode.SYNC_COMPUTE_DOMAIN, "the API server gave no reason (500)", Code.COMPUTE_DOMAIN_FAILED),
    (ErrorCode.SYNC_POD_GROUP, "the KAI scheduler needs a queue", Code.SCHEDULER_OBJECT_FAILED),
    (ErrorCode.POD_LIMIT, "the set asks for 99 pods", Code.POD_LIMIT_EXCEEDED),
    (ErrorCode.GANG_SIZE, "a PodGang would name 9999 pods", Code.GANG_SIZE_EXCEEDED),
    (ErrorCode.PLAN_REPLICA, "replica 0 cannot be planned", Code.PLAN_FAILED),
    (ErrorCode.DECODE_OBJECT, "PodClique a: Expected `int`", Code.DECODE_FAILED),
    (ErrorCode.INIT_IMAGE_MISSING, "pods need an image", Code.INIT_IMAGE_MISSING),
    (ErrorCode.START_ORDER_DISABLED, "the set has a start order", Code.START_ORDER_DISABLED),
    ("ERR_SLOW_CREATE", "writes take long", Code.WRITES_SLOW),
    ("ERR_UNKNOWN_PATCH", "no answer", Code.WRITES_SLOW),
    (ErrorCode.GET_PRIORITY_CLASS, "there is no PriorityClass x", None),
    (ErrorCode.VALIDATE_SET, "spec.replicas: too large", None),
]  # fmt: skip


def an_error(code: str, cause: str) -> LastError:
    return LastError(code, describe(Operation.SYNC, code, "could not do it", cause), "2026-01-01T00:00:00Z")


@pytest.mark.parametrize(("code", "cause", "expected"), ERRORS)
def test_error_has_the_code_of_its_cause(code, cause, expected):
    found = error_reason(an_error(code, cause))
    assert (found and found.code) == expected
    if found is not None:
        assert found.message == cause


def test_error_without_a_cause_has_its_message():
    error = LastError("ERR_X", describe(Operation.SYNC, "ERR_X", "could not do it"), "")
    (found,) = error_reasons([error], ObjectName("PodClique", "a"))
    assert found.line.startswith("PodClique a: could not do it; ")


def test_errors_of_an_object_keep_their_order():
    errors = [an_error(ErrorCode.CREATE_POD, "exceeded quota: q"), an_error(ErrorCode.VALIDATE_SET, "x")]
    assert [each.code for each in error_reasons(errors)] == [Code.QUOTA_EXCEEDED]
