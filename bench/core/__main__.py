"""python -m bench.core: floors and operator in one run; prints tables, fails if a limit is missed, and writes
bench/results/core.json. With names, or with other --replicas, it measures less, and writes nothing. With
--peer it measures another operator first; if that fails, it says why, writes nothing and exits with 2."""

from __future__ import annotations

import argparse
import asyncio
import sys

from bench.core.measure import REPLICAS, measure, measurements
from bench.core.report import kept, show, write
from bench.peer import measure as peers
from bench.peer.errors import PeerError
from grove.local.errors import LocalError


def main() -> int:
    options = _options()
    try:
        result = asyncio.run(_measured(options))
    except (PeerError, LocalError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    show(result)
    if not options.only and options.replicas == REPLICAS:
        write(result)
    return 0 if kept(result) else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.core", description=__doc__)
    parser.add_argument("only", nargs="*", metavar="MEASUREMENT", help=", ".join(measurements()))
    parser.add_argument("--replicas", type=int, default=REPLICAS, help="of two pods each")
    parser.add_argument("--peer", metavar="COMMAND", help="another operator; {kubeconfig} becomes its path")
    parser.add_argument("--peer-dir", metavar="DIRECTORY", default="", help="its CRDs, webhooks and the like")
    options = parser.parse_args()
    if unknown := set(options.only) - measurements().keys():
        parser.error(f"no measurement {', '.join(sorted(unknown))}: use {', '.join(measurements())}")
    if options.peer_dir and options.peer is None:
        parser.error("--peer-dir without --peer: give the command of the operator too")
    return options


async def _measured(options: argparse.Namespace) -> dict[str, object]:
    """The peer first: what is wrong with it is then known after minutes. One control plane runs at a time."""
    if options.peer is None:
        return await measure(options.only, options.replicas)
    peer = await peers.measure(peers.read(options.peer, options.peer_dir), options.only, options.replicas)
    return await measure(options.only, options.replicas) | {"peer": peer}


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:  # the control plane is stopped by then
        sys.exit("interrupted: no results are written")
