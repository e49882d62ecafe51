"""Why an object cannot be written, from the entries of `status.lastErrors`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from textwrap import shorten

from grove import timing
from grove.api.error_codes import ErrorCode
from grove.api.types.common import LastError
from grove.reasons.codes import ReasonCode as Code
from grove.reasons.model import ObjectName, WaitReason

_HARMLESS = frozenset({ErrorCode.VALIDATE_SET.value, ErrorCode.GET_PRIORITY_CLASS.value})
"""Errors that leave nothing undone."""
_ALWAYS = frozenset(
    {
        ErrorCode.POD_LIMIT.value,
        ErrorCode.GANG_SIZE.value,
        ErrorCode.PLAN_REPLICA.value,
        ErrorCode.DECODE_OBJECT.value,
    }
)
"""Errors that keep pods from being planned: those that are planned may all be ready."""
_BY_ERROR_CODE = {
    ErrorCode.POD_LIMIT.value: Code.POD_LIMIT_EXCEEDED,
    ErrorCode.GANG_SIZE.value: Code.GANG_SIZE_EXCEEDED,
    ErrorCode.PLAN_REPLICA.value: Code.PLAN_FAILED,
    ErrorCode.DECODE_OBJECT.value: Code.DECODE_FAILED,
    ErrorCode.INIT_IMAGE_MISSING.value: Code.INIT_IMAGE_MISSING,
    ErrorCode.START_ORDER_DISABLED.value: Code.START_ORDER_DISABLED,
}
_CLAIM_CODES = frozenset(
    {ErrorCode.SYNC_SET_CLAIM.value, ErrorCode.SYNC_GROUP_CLAIM.value, ErrorCode.SYNC_CLIQUE_CLAIM.value}
)
_SLOW = ("ERR_SLOW_", "ERR_UNKNOWN_")
_PHRASES = (
    (re.compile(r"being terminated|NamespaceTerminating"), Code.NAMESPACE_TERMINATING),
    (re.compile(r"NameConflict:"), Code.NAME_CONFLICT),
    (re.compile(r"exceeded quota|failed quota"), Code.QUOTA_EXCEEDED),
    (re.compile(r"failed calling webhook|failed to call webhook"), Code.WEBHOOK_UNAVAILABLE),
    (re.compile(r"cannot (create|get|list|watch|update|patch|delete) resource"), Code.OPERATOR_FORBIDDEN),
    (re.compile(r"denied the request|denied request|is forbidden|\((400|403|422) "), Code.ADMISSION_REFUSED),
)
_DOMAIN_PHRASES = (
    (re.compile(r"is not served"), Code.COMPUTE_DOMAIN_CRD_MISSING),
    (re.compile(r"does not serve"), Code.COMPUTE_DOMAIN_CRD_OUTDATED),
    (re.compile(r"is being deleted"), Code.COMPUTE_DOMAIN_TERMINATING),
    (re.compile(r"belongs to (another owner|PodCliqueSet)|NameConflict:"), Code.COMPUTE_DOMAIN_CONFLICT),
)


def error_reasons(
    errors: Iterable[LastError], about: ObjectName | None = None, *, pods_ready: bool = False
) -> list[WaitReason]:
    """The reasons that follow from the errors of an object, in the order of the errors. If all its planned
    `pods_ready`, only errors that keep others from being planned are reasons to wait."""
    counted = (each for each in errors if not pods_ready or each.code in _ALWAYS)
    return [found for each in counted if (found := error_reason(each, about)) is not None]


def error_reason(error: LastError, about: ObjectName | None = None) -> WaitReason | None:
    """The reason that follows from an error; None if the error leaves nothing undone."""
    if error.code in _HARMLESS:
        return None
    cause = _cause(error.description)
    return WaitReason(_code(error.code, cause), cause, about)


def _cause(description: str) -> str:
    """The cause in a description of `grove.api.error_codes.describe`, or else its message."""
    text = description.partition("] message: ")[2] or description
    text = text.rpartition(", cause: ")[2] or text
    return shorten(" ".join(text.split()), timing.SCHEDULER_MESSAGE_LENGTH, placeholder=" ...")


def _code(error_code: str, cause: str) -> Code:
    if (known := _BY_ERROR_CODE.get(error_code)) is not None:
        return known
    if error_code.startswith(_SLOW):
        return Code.WRITES_SLOW
    if error_code == ErrorCode.SYNC_COMPUTE_DOMAIN:
        return _phrase_code(_DOMAIN_PHRASES, cause) or Code.COMPUTE_DOMAIN_FAILED
    if (found := _phrase_code(_PHRASES, cause)) is not None:
        return found
    if error_code in _CLAIM_CODES:
        return Code.CLAIM_MISSING
    return Code.SCHEDULER_OBJECT_FAILED if error_code == ErrorCode.SYNC_POD_GROUP else Code.WRITE_FAILED


def _phrase_code(phrases: Iterable[tuple[re.Pattern[str], Code]], text: str) -> Code | None:
    return next((code for words, code in phrases if words.search(text)), None)
