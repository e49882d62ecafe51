"""Descriptions of last errors."""

from __future__ import annotations

from grove.api.error_codes import ErrorCode, Operation, describe


def test_describe_uses_upstream_format():
    description = describe(Operation.SYNC, ErrorCode.CREATE_POD, "could not create pod a", "quota exceeded")
    assert description == (
        "[Operation: Sync, Code: ERR_CREATE_POD] message: could not create pod a, cause: quota exceeded"
    )
