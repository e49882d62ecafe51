"""Test data outside of the checkout: upstream's CRDs and workloads."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("GROVE_SHARED", ROOT.parent / "shared"))


def shared_data(name: str) -> Path:
    """A file or folder of the shared test data; skips the test if it does not exist."""
    path = SHARED / "testdata" / name
    if not path.exists():
        pytest.skip(f"no shared test data at {path}; set GROVE_SHARED to its folder")
    return path
