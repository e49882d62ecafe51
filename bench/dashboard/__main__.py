"""python -m bench.dashboard: the page in a browser, on a large cluster; prints a table, writes
bench/results/dashboard.json."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

from bench.dashboard.busy_state import LARGE, write_snapshot
from bench.dashboard.dashboard_process import changing_dashboard, snapshot_dashboard
from bench.dashboard.drawing_timing import compare
from bench.dashboard.page_timing import started_browser, time_changes, time_page
from bench.dashboard.report import Result, kept, show, write


async def measure(snapshot: Path) -> Result:
    """Everything, one after another."""
    async with started_browser() as browser:
        with snapshot_dashboard(snapshot) as served:
            page = await time_page(browser, served)
            sizes = len(served.picture), served.compressed
            seconds, memory = served.seconds, served.memory
        with changing_dashboard(snapshot) as served:
            changes = await time_changes(browser, served)
        drawing = await compare(browser)
        return Result(browser.version, *sizes, seconds, memory, page, changes, drawing)


async def main() -> int:
    with tempfile.TemporaryDirectory(prefix="grove-bench-") as folder:
        # A file that was made before saves the minutes in which the operator in memory fills the cluster.
        snapshot = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(folder) / "cluster.json"
        if not snapshot.exists():
            write_snapshot(snapshot, LARGE)
        result = await measure(snapshot)
    show(result)
    write(result)
    return 0 if kept(result) else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
