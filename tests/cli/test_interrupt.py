"""An interrupted command ends with one line and exit code 130, wherever the interrupt was noticed."""

from __future__ import annotations

import asyncio

import pytest

from grove.cli import main


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, asyncio.CancelledError])
def test_interrupt_is_one_line_and_130(interrupt, monkeypatch, capsys) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise interrupt

    monkeypatch.setattr(main, "_run", interrupted)
    monkeypatch.setattr("sys.unraisablehook", main.sys.unraisablehook)
    with pytest.raises(SystemExit) as end:
        main.main([])
    assert end.value.code == 130
    assert capsys.readouterr().err == "grove: interrupted\n"
