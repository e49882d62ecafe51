"""Generated files: which count as out of date, and how they are rewritten."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import generated

FILES = {Path("charts/grove/crds/a.yaml"): "a\n", Path("docs/page.md"): "page\n"}


@pytest.fixture
def written(tmp_path) -> Path:
    generated.write(tmp_path, FILES)
    return tmp_path


def test_written_files_are_up_to_date(written):
    assert list(generated.stale(written, FILES)) == []


def test_missing_file_is_out_of_date(written):
    (written / "docs/page.md").unlink()
    assert list(generated.stale(written, FILES)) == [Path("docs/page.md")]


def test_changed_file_is_out_of_date_and_rewritten(written):
    (written / "docs/page.md").write_text("edited\n")
    assert list(generated.stale(written, FILES)) == [Path("docs/page.md")]
    generated.write(written, FILES)
    assert (written / "docs/page.md").read_text() == "page\n"


def test_leftover_file_is_out_of_date_and_removed(written):
    leftover = written / "charts/grove/crds/gone.yaml"
    leftover.write_text("old\n")
    assert list(generated.stale(written, FILES)) == [Path("charts/grove/crds/gone.yaml")]
    generated.write(written, FILES)
    assert not leftover.exists()


def test_repository_is_up_to_date():
    files = {path: text for generator in generated.GENERATORS for path, text in generator().items()}
    assert list(generated.stale(generated.ROOT, files)) == []


def test_check_lists_stale_files_and_fails(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(generated, "ROOT", tmp_path)
    monkeypatch.setattr(generated, "GENERATORS", (lambda: FILES,))
    monkeypatch.setattr("sys.argv", ["generated", "--check"])
    assert generated.main() == 1
    assert capsys.readouterr().err == "out of date, run make fix: charts/grove/crds/a.yaml, docs/page.md\n"
    monkeypatch.setattr("sys.argv", ["generated"])
    assert generated.main() == 0
    monkeypatch.setattr("sys.argv", ["generated", "--check"])
    assert generated.main() == 0
