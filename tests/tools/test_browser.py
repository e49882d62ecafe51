"""Chromium for the tests of the dashboard: which program is used."""

from __future__ import annotations

import pytest

from tools import browser


@pytest.mark.parametrize("name", browser.NAMES)
def test_browser_on_path_is_found(tmp_path, name):
    program = tmp_path / name
    program.touch(mode=0o755)
    assert browser.on_path({"PATH": str(tmp_path)}) == program


def test_chromium_is_preferred(tmp_path):
    for name in reversed(browser.NAMES):
        (tmp_path / name).touch(mode=0o755)
    assert browser.on_path({"PATH": str(tmp_path)}) == tmp_path / "chromium"


def test_file_that_is_no_program_is_ignored(tmp_path):
    (tmp_path / "chromium").touch(mode=0o644)
    assert browser.on_path({"PATH": str(tmp_path)}) is None


def test_missing_browser_is_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(browser, "find", lambda: None)
    monkeypatch.setattr(browser, "install", lambda: None)
    assert browser.main() == 1
    assert capsys.readouterr().err.splitlines()[-1] == browser.MISSING
