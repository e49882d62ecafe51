"""Which versions of Kubernetes keep nominations when the scheduler restarts."""

from __future__ import annotations

import pytest

from grove.operator.caches.scheduler_process import ServerVersion


@pytest.mark.parametrize(
    ("major", "minor", "keeps"),
    [("1", "36", False), ("1", "36+", False), ("1", "37", True), ("1", "37+", True), ("2", "0", True)],
)
def test_nominations_are_kept_since_137(major: str, minor: str, keeps: bool) -> None:
    assert ServerVersion(major, minor).keeps_nominations is keeps


def test_unknown_version_keeps_no_nominations() -> None:
    assert not ServerVersion().keeps_nominations
