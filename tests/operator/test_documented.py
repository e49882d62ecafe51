"""docs/operator.md lists every metric and every exit code."""

from __future__ import annotations

import re

from prometheus_client import REGISTRY

from grove.cli.commands.operator import Exit
from tests.shared import ROOT

PAGE = (ROOT / "docs/operator.md").read_text()


def test_every_metric_is_documented_with_its_kind():
    found = {
        (metric.name + "_total" * (metric.type == "counter"), metric.type)
        for metric in REGISTRY.collect()
        if metric.name.startswith("grove_")
    }
    assert len(found) > 15
    assert set(re.findall(r"^\| `(grove_\w+)` \| (\w+) \|", PAGE, re.MULTILINE)) == found


def test_every_exit_code_is_documented():
    section = PAGE.partition("## Exit codes")[2].partition("## ")[0]
    assert {int(code) for code in re.findall(r"^\| (\d) \|", section, re.MULTILINE)} == set(Exit)
