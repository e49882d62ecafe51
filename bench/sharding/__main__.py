"""python -m bench.sharding: computes the tables of docs/decisions/shards.md from bench/results, prints them
and writes them to that page. `trial` first measures on a control plane, and writes results/sharding.json."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys

from bench.sharding import measured, report


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.sharding", description=__doc__)
    parser.add_argument("trial", nargs="?", choices=["trial"], help="measure on a control plane before")
    if parser.parse_args().trial:
        from bench.sharding import trial  # the model needs no control plane

        result = asyncio.run(trial.measure())
        (measured.RESULTS / "sharding.json").write_text(json.dumps(result, indent=2) + "\n")
    tables = report.tables(measured.read())
    for name, table in tables.items():
        print(f"{name}\n{table}\n")
    report.PAGE.write_text(report.insert(report.PAGE.read_text(), tables))
    return 0


if __name__ == "__main__":
    sys.exit(main())
