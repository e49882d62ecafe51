"""Codes and descriptions of the entries of `status.lastErrors`."""

from __future__ import annotations

from enum import StrEnum


class Operation(StrEnum):
    """The operation that failed, as the description names it."""

    SYNC = "Sync"
    DELETE = "Delete"
    LIST = "GetExistingResourceNames"


class ErrorCode(StrEnum):
    """What failed. The codes that upstream has are used unchanged; others follow `ERR_<VERB>_<RESOURCE>`."""

    SYNC_CLIQUE = "ERR_SYNC_PODCLIQUE"
    SYNC_SERVICE = "ERR_SYNC_PODCLIQUESET_SERVICE"
    SYNC_AUTOSCALER = "ERR_SYNC_HPA"
    SYNC_POD_GROUP = "ERR_SYNC_PODGROUP"
    SYNC_SET_CLAIM = "ERR_SYNC_PCS_RESOURCE_CLAIM"
    SYNC_GROUP_CLAIM = "ERR_SYNC_PCSG_RESOURCE_CLAIM"
    SYNC_CLIQUE_CLAIM = "ERR_SYNC_PCLQ_RESOURCE_CLAIM"
    SYNC_COMPUTE_DOMAIN = "ERR_SYNC_COMPUTEDOMAIN"
    WRITE_GANG = "ERR_CREATE_OR_PATCH_PODGANG"
    PLAN_REPLICA = "ERR_PLAN_PODCLIQUESET_REPLICA"
    CREATE_POD = "ERR_CREATE_POD"
    DELETE_POD = "ERR_DELETE_POD"
    REMOVE_GATE = "ERR_REMOVE_POD_SCHEDULING_GATE"
    INIT_IMAGE_MISSING = "ERR_INITCONTAINER_ENVIRONMENT_VARIABLE_MISSING"
    START_ORDER_DISABLED = "ERR_START_ORDER_DISABLED"
    VALIDATE_SET = "ERR_VALIDATE_PODCLIQUESET"
    DECODE_OBJECT = "ERR_DECODE_OBJECT"
    GET_PRIORITY_CLASS = "ERR_GET_PRIORITYCLASS"
    POD_LIMIT = "ERR_EXCEED_POD_LIMIT"
    GANG_SIZE = "ERR_EXCEED_PODGANG_SIZE"


def describe(operation: Operation, code: str, message: str, cause: str = "") -> str:
    """The description of a last error, in upstream's form, which clients may search."""
    sentence = f"[Operation: {operation}, Code: {code}] message: {message}"
    return f"{sentence}, cause: {cause}" if cause else sentence
