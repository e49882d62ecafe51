"""The commands on pages of the documentation."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from grove.local.paths import cache_dir
from tests.shared import ROOT

_OURS = ("KUBECONFIG", "XDG_STATE_HOME", "COLUMNS", "MAKEFLAGS", "MAKELEVEL", "ARGS")


def section(page: str, title: str) -> str:
    text = (ROOT / page).read_text()
    return text.partition(f"## {title}\n")[2].partition("\n## ")[0]


def block(text: str) -> list[str]:
    """The command lines of a page, without the comments that explain them."""
    return [line.partition(" # ")[0].strip() for line in re.findall(r"^    (\S.*)$", text, re.MULTILINE)]


def mentioned(text: str) -> list[str]:
    """Commands in the text of a page."""
    words = (" ".join(word.split()) for word in re.findall(r"`([^`]+)`", text))
    return [word for word in words if re.match(r"(grove|make)( |$)", word)]


def run_commands(commands: Iterable[str], home: Path) -> subprocess.CompletedProcess[str]:
    """Run commands in a shell with only a checkout. Background processes are stopped afterwards."""
    environment = {name: value for name, value in os.environ.items() if name not in _OURS}
    environment |= {
        "HOME": str(home),
        "GROVE_CACHE": str(cache_dir()),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    log = home / ".local/state/grove/default/logs/operator.log"
    script = "\n".join(["set -em -o pipefail", 'trap "kill %1 2>/dev/null || true" EXIT', *commands])
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    output = log.read_text() if log.exists() else ""
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}\n{output}"
    return done
