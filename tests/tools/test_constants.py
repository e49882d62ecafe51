"""The check of constants finds numbers that are not on the page of delays and limits."""

from __future__ import annotations

import pytest

from grove import timing
from tools import constants


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("DELAY = 0.5", True),
        ("_MAX_BYTES = 64 * 1024**2", True),
        ("_LIMIT: int = -1", True),
        ("BACKOFF = (0.1, 10)", True),
        ("_FIRST, _LONGEST = 0.1, 5.0", True),
        ("ENABLED = True", False),
        ("NAME = 'a'", False),
        ("PAIR = (1, 'a')", False),
        ("NONE = ()", False),
        ("OTHER = timing.DELAY", False),
        ("delay = 0.5", False),
        ("class A:\n    DELAY = 0.5", False),
    ],
)
def test_number_in_module_is_found(source: str, found: bool):
    assert bool(list(constants.numbers(source))) is found


def test_finding_names_module_and_constant(tmp_path):
    module = tmp_path / "plan" / "a.py"
    module.parent.mkdir()
    module.write_text("\nDELAY = 1\n")
    assert list(constants.findings(tmp_path)) == [
        "src/grove/plan/a.py:2: DELAY: move it to grove.timing, with its reason"
    ]


def test_listed_formats_exist():
    for place, names in constants.FORMATS.items():
        found = {name for _, name in constants.numbers((constants.SOURCE / place).read_text())}
        assert names <= found, place


def test_each_constant_is_used():
    """One that is not used any more leaves the page."""
    used = "\n".join(file.read_text() for file in constants.SOURCE.rglob("*.py"))
    assert [name for name in vars(timing) if name.isupper() and f"timing.{name}" not in used] == []
