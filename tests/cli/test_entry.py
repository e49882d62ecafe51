"""The entry point of `grove`: interrupted while modules are imported."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

BEGIN = """
import importlib.abc, os, signal, sys

class Interrupted(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "grove.cli.main":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupted())
from grove.cli.entry import main
sys.argv = ["grove", "get"]
main()
"""


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_interrupt_during_import_is_one_line() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", BEGIN],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "grove: interrupted\n")
