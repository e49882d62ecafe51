"""One contender at one task, in a process of its own. Prints what it cost as JSON.

A process each, so that nobody pays for another's imports, threads or garbage. Run as
`python -m bench.kube.contender NAME TASK ARGUMENTS...`.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import inspect
import json
import logging
import os
import sys

import structlog


def main(name: str, task: str, *arguments: str) -> None:
    """Run the task; numbers among the arguments are numbers."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    function = getattr(importlib.import_module(f"bench.kube.{name}"), task)
    gc.freeze()  # what a contender imports is not to be looked through again and again
    outcome = function(*(int(word) if word.isdecimal() else word for word in arguments))
    cost = asyncio.run(outcome) if inspect.iscoroutine(outcome) else outcome
    print(json.dumps(cost), flush=True)
    os._exit(0)  # threads and half-read streams of a contender are not worth waiting for


if __name__ == "__main__":
    main(*sys.argv[1:])
