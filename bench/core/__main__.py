"""python -m bench.core: floors and operator in one run; prints a table, writes bench/results/core.json."""

from __future__ import annotations

import asyncio
import sys

from bench.core.measure import measure
from bench.core.report import kept, show, write


def main() -> int:
    result = asyncio.run(measure())
    show(result)
    write(result)
    return 0 if kept(result) else 1


if __name__ == "__main__":
    sys.exit(main())
