"""What the operator imports: modules that it seldom uses take memory in every process."""

from __future__ import annotations

import subprocess
import sys

_SELDOM_USED = ("aiohttp", "cryptography", "cyclopts")
_SCRIPT = f"""
import sys
import grove.operator.manager
sys.stdout.write(",".join(sys.modules.keys() & set({_SELDOM_USED})))
"""


def test_manager_imports_no_seldom_used_package() -> None:
    found = subprocess.run([sys.executable, "-c", _SCRIPT], capture_output=True, text=True, check=True)
    assert found.stdout == ""
