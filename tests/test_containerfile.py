"""The image runs the Python version of the tests: limits such as the recursion depth differ by version."""

from __future__ import annotations

import re
import tomllib

from tests.shared import ROOT


def test_image_uses_the_tested_python_version() -> None:
    tested = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]["python_version"]
    used = re.findall(r"^FROM python:([\d.]+)-slim", (ROOT / "Containerfile").read_text(), re.MULTILINE)
    assert used
    assert set(used) == {tested}
