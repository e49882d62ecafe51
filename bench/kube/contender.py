"""Runs one contender on one task in a separate process, and prints its cost as JSON.

Separate processes, so that imports, threads and garbage of one contender do not affect another. Run as
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
    """Run the task; numeric arguments are converted."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    function = getattr(importlib.import_module(f"bench.kube.{name}"), task)
    gc.freeze()  # excludes imported modules from garbage collection
    outcome = function(*(int(word) if word.isdecimal() else word for word in arguments))
    cost = asyncio.run(outcome) if inspect.iscoroutine(outcome) else outcome
    print(json.dumps(cost), flush=True)
    os._exit(0)  # does not wait for threads and open streams of a contender


if __name__ == "__main__":
    main(*sys.argv[1:])
