"""python -m bench.placement: speed, rounds and quality in one run; prints tables, writes
results/placement.json."""

from __future__ import annotations

import sys

from bench.placement import churn, rounds, speed
from bench.placement.report import kept, show, write


def main() -> int:
    result = {"speed": speed.measure(), "rounds": rounds.measure(), "quality": churn.measure()}
    show(result)
    write(result)
    return 0 if kept(result) else 1


if __name__ == "__main__":
    sys.exit(main())
