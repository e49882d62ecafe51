"""python -m tools.helm: finds or builds Helm."""

from __future__ import annotations

from rich.console import Console

from grove.local.progress import ProgressReporter
from tools import helm

if __name__ == "__main__":
    helm.find(ProgressReporter(Console(stderr=True)))
