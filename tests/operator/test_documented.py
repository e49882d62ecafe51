"""What docs/operator.md promises is what there is."""

from __future__ import annotations

import re

from prometheus_client.metrics import MetricWrapperBase

from grove.cli.operator import Exit
from grove.kube import metrics
from grove.operator import telemetry
from tests.shared import ROOT

PAGE = (ROOT / "docs/operator.md").read_text()


def test_every_metric_is_documented_with_its_kind():
    found = {
        (next(iter(metric.describe())).name + "_total" * (metric._type == "counter"), metric._type)
        for module in (metrics, telemetry)
        for metric in vars(module).values()
        if isinstance(metric, MetricWrapperBase)
    }
    assert len(found) > 15
    assert set(re.findall(r"^\| `(grove_\w+)` \| (\w+) \|", PAGE, re.MULTILINE)) == found


def test_every_exit_code_is_documented():
    section = PAGE.partition("## Exit codes")[2].partition("## ")[0]
    assert {int(code) for code in re.findall(r"^\| (\d) \|", section, re.MULTILINE)} == set(Exit)
