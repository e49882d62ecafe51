"""The vocabulary check finds retired words in names, prose and documents, and folders that are overfull."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.vocabulary import MOST_MODULES

from tools import vocabulary


@pytest.mark.parametrize(
    "source",
    [
        "def tell_told(): ...",
        "class Mender: ...",
        "def f(stray): ...",
        "ghosts = 1",
        "self.estate = 1",
        "for nobody in (): ...",
    ],
)
def test_retired_word_in_a_name_is_found(source: str) -> None:
    assert len(list(vocabulary.retired_names(source, "x.py"))) == 1


@pytest.mark.parametrize("source", ["def reconcile(key): ...", "class Membership: ...", "amended = 1"])
def test_plain_name_is_accepted(source: str) -> None:
    assert list(vocabulary.retired_names(source, "x.py")) == []


def test_retired_word_in_prose_names_its_line() -> None:
    source = '"""Fine.\n\nPods are made anew.\n"""\nlog("whoever")  # nobody\n'
    found = [finding.place for finding in vocabulary.retired_prose(source, "x.py")]
    assert found == ["x.py:3", "x.py:5", "x.py:5"]


def test_long_test_name_is_found() -> None:
    source = f"def test_{'a' * 60}(): ...\ndef test_short(): ..."
    assert [finding.place for finding in vocabulary.long_test_names(source, "x.py")] == ["x.py:1"]


def test_overfull_folder_is_found(tmp_path: Path) -> None:
    for number in range(MOST_MODULES + 1):
        (tmp_path / f"module_{number}.py").touch()
    (finding,) = vocabulary.overfull(tmp_path)
    assert "15 modules, at most 14" in finding.problem
