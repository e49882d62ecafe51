"""docs/architecture.md names functions and folders that exist."""

from __future__ import annotations

import re
from importlib import import_module

import pytest

from tests.shared import ROOT

PAGE = (ROOT / "docs/architecture.md").read_text()
FUNCTIONS = re.findall(r"`(grove(?:\.\w+)+)`", PAGE)
MODULES = re.findall(r"`((?:plan|api|rules|schedulers|fabrics|operator|dynamo|cli|kube)/[\w/]*)`", PAGE)


def resolve(dotted: str) -> object:
    """The module, class, function or method of that name."""
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: object = import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for name in parts[length:]:
            found = getattr(found, name)
        return found
    raise AssertionError(f"no module {dotted}")


def test_page_names_a_function_for_each_step() -> None:
    steps = re.findall(r"^\| (\d+) \| `", PAGE, re.MULTILINE)
    assert steps == [str(number) for number in range(1, len(steps) + 1)]
    assert len(steps) > 15


@pytest.mark.parametrize("dotted", FUNCTIONS)
def test_function_of_the_page_exists(dotted: str) -> None:
    assert resolve(dotted) is not None


@pytest.mark.parametrize("path", sorted(set(MODULES)))
def test_folder_of_the_page_exists(path: str) -> None:
    place = ROOT / "src/grove" / path
    assert place.is_dir() or place.with_suffix(".py").is_file()
