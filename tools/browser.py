"""python -m tools.browser: finds Chromium for the tests of the dashboard, or installs it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from playwright.sync_api import sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
MISSING = "no Chromium: install it with the packages of the system (apt-get install chromium fonts-dejavu)"
_PACKAGES = ("chromium", "fonts-dejavu")
_LONGEST_DOWNLOAD = 300.0  # seconds; where the host of Playwright's builds cannot be reached, it hangs


def on_path(environ: Mapping[str, str] = os.environ) -> Path | None:
    """Chromium or Chrome on PATH."""
    found = (shutil.which(name, path=environ.get("PATH")) for name in NAMES)
    return next((Path(each) for each in found if each), None)


def find(environ: Mapping[str, str] = os.environ) -> Path | None:
    """Chromium on PATH, otherwise the build of Playwright if it is installed."""
    return on_path(environ) or _of_playwright()


def install(environ: Mapping[str, str] = os.environ) -> Path | None:
    """Install the build of Playwright, otherwise the package of the system, which only root can. Returns the
    program, or None if neither is possible."""
    if _succeeds(sys.executable, "-m", "playwright", "install", "chromium") and (own := _of_playwright()):
        return own
    if os.geteuid() == 0 and (apt := shutil.which("apt-get", path=environ.get("PATH"))):
        _succeeds(apt, "update") and _succeeds(apt, "install", "-y", "--no-install-recommends", *_PACKAGES)
    return on_path(environ)


def _of_playwright() -> Path | None:
    with sync_playwright() as playwright:
        program = Path(playwright.chromium.executable_path)
    return program if os.access(program, os.X_OK) else None


def _succeeds(*command: str) -> bool:
    try:
        ended = subprocess.run(command, capture_output=True, timeout=_LONGEST_DOWNLOAD, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return ended.returncode == 0


def main() -> int:
    """Print which program the tests will use."""
    program = find()
    if program is None:
        sys.stderr.write("installing Chromium for the tests of the dashboard\n")
        program = install()
    sys.stderr.write(f"{program or MISSING}\n")
    return 0 if program else 1


if __name__ == "__main__":
    sys.exit(main())
