"""Our client against a bare HTTP loop, `kubernetes` and `kubernetes-asyncio`, as ratios within one run."""

from __future__ import annotations

import asyncio
import logging
import sys
import tempfile
from pathlib import Path

import structlog
from rich.console import Console

from bench.kube import measure, report


def main() -> int:
    """Measure, print and write the results. Fails if a budget is exceeded."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    console = Console()
    with tempfile.TemporaryDirectory(prefix="grove-bench-") as folder:
        recorded = Path(folder) / "pods.json"
        with measure.control_plane(console) as kubeconfig:
            recorded.write_bytes(asyncio.run(measure.record(kubeconfig)))
            creates = measure.creates(kubeconfig, console)
        decoding = measure.decoding(recorded, console)
        watching = measure.watching(recorded, console)
    kept = report.budgets(creates, decoding, watching)
    report.show(console, creates, decoding, watching, kept)
    report.write(creates, decoding, watching, kept)
    return 0 if all(budget.kept for budget in kept) else 1


if __name__ == "__main__":
    sys.exit(main())
