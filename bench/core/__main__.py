"""python -m bench.core: floors and operator in one run; prints tables, fails if a limit is missed, and writes
bench/results/core.json. With names, or with other --replicas, it measures less, and writes nothing."""

from __future__ import annotations

import argparse
import asyncio
import sys

from bench.core.measure import REPLICAS, measure, measurements
from bench.core.report import kept, show, write


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.core", description=__doc__)
    parser.add_argument("only", nargs="*", metavar="MEASUREMENT", help=", ".join(measurements()))
    parser.add_argument("--replicas", type=int, default=REPLICAS, help="of two pods each")
    options = parser.parse_args()
    if unknown := set(options.only) - measurements().keys():
        parser.error(f"no measurement {', '.join(sorted(unknown))}: use {', '.join(measurements())}")
    result = asyncio.run(measure(options.only, options.replicas))
    show(result)
    if not options.only and options.replicas == REPLICAS:
        write(result)
    return 0 if kept(result) else 1


if __name__ == "__main__":
    sys.exit(main())
