"""python -m bench.growth: growth of costs up to 10,000 pods; prints tables, fails if a limit is missed,
merges each measurement into bench/results/growth.json when it ends, and draws docs/growth.svg. With names it
runs only these: all take an hour and a half. With other --sizes or --cycles it writes only to the file that
--out names."""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import structlog

from bench.control_plane import KUBERNETES
from bench.environment import environment
from bench.growth import cycles, fairness, many_sets, restart, sizes
from bench.growth.draw import draw
from bench.growth.report import RESULTS, kept, merge, results_file, show
from bench.growth.scale import CYCLES, SIZES, Scale, parse_sizes
from bench.growth.sets import NODES

MEASUREMENTS: Mapping[str, Callable[[Scale], Coroutine[Any, Any, dict[str, Any]]]] = {
    "one_pod_gangs": partial(sizes.measure, pods_each=1),
    "gangs_of_8": partial(sizes.measure, pods_each=8),
    "restart": restart.measure,
    "many_sets": many_sets.measure,
    "fairness": fairness.measure,
    "cycles": cycles.measure,
}


def main() -> int:
    options = _options()
    # The caches of each run log what they sync, between the lines of progress.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    found = {}
    for name, measurement in MEASUREMENTS.items():
        if not options.only or name in options.only:
            where = {"environment": environment(KUBERNETES), "nodes": NODES}
            found[name] = {**where, **asyncio.run(measurement(options.scale))}
            show(name, found[name])
            if options.file:
                merge(name, found[name], options.file)
            if options.file == RESULTS:
                draw()
    return 0 if kept(found) else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.growth", description=__doc__)
    parser.add_argument("only", nargs="*", metavar="MEASUREMENT", help=", ".join(MEASUREMENTS))
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="numbers of pods, such as 40,80")
    parser.add_argument("--cycles", type=int, default=CYCLES, help="of making and deleting the first number")
    parser.add_argument("--out", type=Path, help="the file of results that measurements are merged into")
    options = parser.parse_args()
    if unknown := set(options.only) - MEASUREMENTS.keys():
        parser.error(f"no measurement {', '.join(sorted(unknown))}: use {', '.join(MEASUREMENTS)}")
    try:
        options.scale = Scale(parse_sizes(options.sizes), options.cycles)
        options.file = results_file(options.scale, options.out)
    except ValueError as error:
        parser.error(str(error))
    return options


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:  # the control plane is stopped by then
        sys.exit("interrupted: results of finished measurements are kept")
