"""How many PodCliqueSets are defaulted and validated per second of CPU: `python -m bench.rules FILE...`."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import yaml

from grove.api.configuration.types import Scheduler, SchedulerProfile
from grove.rules.model import Facts
from grove.rules.podcliqueset import defaults, validation
from grove.schedulers.registry import backends

ROUNDS = 5
COUNT = 1000
FACTS = Facts(backends=backends(Scheduler((SchedulerProfile("kai-scheduler"),))))


def a_second(body: dict[str, object], change: bool) -> float:
    """The best of several rounds, since other processes run on the machine."""
    stored = defaults.default_set(body)
    best = 0.0
    for _ in range(ROUNDS):
        began = time.process_time()
        for _ in range(COUNT):
            if change:
                verdict = validation.on_update(stored, defaults.default_set(body, stored), FACTS)
            else:
                verdict = validation.on_create(defaults.default_set(body), FACTS)
            assert verdict.allowed, verdict.message
        best = max(best, COUNT / (time.process_time() - began))
    return best


def main() -> None:
    for name in sys.argv[1:]:
        for body in yaml.safe_load_all(Path(name).read_text()):
            if body and body.get("kind") == "PodCliqueSet":
                created, changed = a_second(body, change=False), a_second(body, change=True)
                print(
                    f"{Path(name).name}: {created:,.0f} creates or {changed:,.0f} updates per second of CPU"
                )


if __name__ == "__main__":
    main()
