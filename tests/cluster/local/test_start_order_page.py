"""The commands of docs/start-order.md, as they stand there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.shared import ROOT

from grove.local.cluster import down
from grove.local.paths import cache_dir
from grove.local.state import StateDir

PAGE = (ROOT / "docs/start-order.md").read_text()


def commands(page: str, section: str) -> list[str]:
    """The lines of a section that are to be typed."""
    text = page.partition(f"## {section}\n")[2].partition("\n## ")[0]
    return re.findall(r"^    (.+)$", text, re.MULTILINE)


@pytest.fixture
def home(tmp_path: Path, control_plane: object):
    """A home without a cluster; whatever is left running there ends with the test."""
    state = StateDir(tmp_path / ".local/state/grove/default")
    yield tmp_path
    down(state, delete=True)


def test_try_it(home: Path) -> None:
    environment = {
        **{name: value for name, value in os.environ.items() if name not in ("KUBECONFIG", "XDG_STATE_HOME")},
        "HOME": str(home),
        "GROVE_CACHE": str(cache_dir()),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    page = commands(PAGE, "Try it")
    log = home / "operator.log"
    script = "\n".join(["set -em -o pipefail", 'trap "kill %1 2>/dev/null || true" EXIT', *page])
    done = subprocess.run(
        ["bash", "-c", script.replace("operator.log", str(log))],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}\n{log.read_text() if log.exists() else ''}"
    looks = done.stdout.split("NAME ")[1:]
    order = [line.split("-")[2] for line in looks[-1].splitlines() if line.startswith("ordered-0-")]
    assert order == ["store", "prefill", "prefill", "decode", "decode"]
    assert "waiting for ordered-0-store (0 of 1 ready)" in done.stdout
    assert not (home / ".local/state/grove/default").exists(), "nothing is left"
