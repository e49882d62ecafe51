"""Errors about shared ResourceClaims that only a user can solve."""

from __future__ import annotations

from grove.api.error_codes import ErrorCode
from grove.api.intents import ObjectRef
from grove.api.naming.annotations import SHARED_WITH_NAMESPACES
from grove.api.types.podcliqueset import PodCliqueSet
from grove.plan.desired.shared_claims import SharedClaim, crosses_namespaces
from grove.plan.model import UserError
from grove.plan.snapshot import ClaimObjects

CLAIMS_NOT_VISIBLE = UserError(
    ErrorCode.SYNC_SET_CLAIM,
    "cannot list resourceclaims.resource.k8s.io: the cluster must serve resource.k8s.io/v1, and the operator "
    "must be allowed to list and watch resourceclaims and resourceclaimtemplates",
)


def missing_template_error(
    workload: PodCliqueSet, claim: SharedClaim, known: ClaimObjects, owner: ObjectRef | None
) -> UserError:
    """An error with the same message for every replica, so that it is reported once. The message does not
    disclose whether a template in another namespace exists."""
    source, own = claim.source, workload.metadata.namespace
    part = "the set" if claim.owner is None else claim.owner.template.name
    template = f"ResourceClaimTemplate {source.namespace or own}/{source.name}"
    reference = f"which resourceSharing of {part} refers to"
    if crosses_namespaces(workload, source):
        remedy = f"create it, or add {own} to its annotation {SHARED_WITH_NAMESPACES}"
        message = f"{template}, {reference}, does not exist or is not shared with namespace {own}: {remedy}"
    elif reason := known.undecodable.get((own, source.name)):
        message = f"cannot decode {template}, {reference} ({reason}): replace it"
    else:
        message = f"there is no {template}, {reference}: create it"
    return UserError(claim.code, message, owner)


def claim_in_use_error(clique: ObjectRef, claim: str) -> UserError:
    """The error of a clique whose pods need a claim that is terminating."""
    message = (
        f"pods wait for ResourceClaim {claim}, which was deleted while others use it: it is created again "
        "when the pods that use it are gone"
    )
    return UserError(ErrorCode.SYNC_CLIQUE_CLAIM, message, clique)
