"""Events as text at several widths."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from grove.cli.views.status.event_lines import EventLines
from grove.explanation.model import EventView, ObjectRef

POD = ObjectRef("Pod", "demo-0-worker-x7f", "team")
EVENTS = [
    EventView("2027-01-15T07:00:00Z", 3600, "Normal", "Created", ObjectRef("PodCliqueSet", "demo"), "ok"),
    EventView("2027-01-15T07:50:00Z", 600, "Warning", "Failed", POD, "no \x1b]0;x\x07image", 9),
]
R = "\N{REPLACEMENT CHARACTER}"
WIDE = f"""\
LAST  TYPE     REASON   OBJECT                 MESSAGE
60m   Normal   Created  PodCliqueSet/demo      ok
10m   Warning  Failed   Pod/demo-0-worker-x7f  no {R}]0;x{R}image (x9)
"""
NARROW = f"""\
60m Created PodCliqueSet/demo
  ok
10m Warning Failed Pod/demo-0-worker-x7f
  no {R}]0;x{R}image (x9)
"""


@pytest.mark.parametrize(("width", "expected"), [(None, WIDE), (40, NARROW)], ids=["wide", "40 columns"])
def test_events_are_listed_in_order(width, expected):
    assert "".join(f"{line.text}\n" for line in EventLines(width).lines(EVENTS)) == expected


@pytest.mark.parametrize("width", [1, 12, 60, 90])
def test_no_line_is_wider_than_the_terminal(width):
    assert max(cell_len(line.text) for line in EventLines(width).lines(EVENTS)) <= width


def test_later_events_are_in_the_same_columns_without_headings():
    lines = EventLines()
    first = lines.lines(EVENTS)
    (later,) = lines.lines(EVENTS[1:])
    assert later == first[-1]
