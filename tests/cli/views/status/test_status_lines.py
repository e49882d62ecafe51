"""The page of `grove status` at several widths."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from grove import timing
from grove.cli.views.status.status_lines import status_lines
from grove.explanation.model import ObjectRef, ReasonView
from grove.reasons.codes import ReasonCode
from grove.views.operator_view import OperatorView
from grove.views.set_view import FabricDomainView
from grove.views.status.model import (
    ComponentView,
    ConstraintsView,
    ErrorView,
    GangStatusView,
    GraphView,
    ReplicaCounts,
    RoleView,
    RolloutView,
    StatusView,
    Verdict,
)

NOW = 1_800_000_000.0  # 2027-01-15T08:00:00Z
FULL = StatusView(
    ObjectRef("DynamoGraphDeployment", "demo", "team"),
    Verdict.WAITING,
    "1/2 replicas available, 1/2 gangs running, 4/8 pods ready",
    OperatorView(True, "grove-system/lease", "operator-1", "2027-01-15T07:59:58Z", 2),
    GraphView("demo", "pending", False, "1 of 2 components are ready",
              (ComponentView("Frontend", "PodClique", 1, 1, 1),)),
    ReplicaCounts(2, 1, 1),
    RolloutView("Progressing", 1, 2, 3, 4, 0, 0, (1,), "2027-01-15T07:55:00Z"),
    ConstraintsView("default", "rack", False, "UnsupportedByScheduler", "the scheduler ignores them"),
    (RoleView("router", 2, 4, 3),),
    (
        GangStatusView("demo-0", "Running", 4, 4, 0.875, {"demo-0": "rack r1"}, True),
        GangStatusView("demo-1", "Pending", 0, 4, None, {}, False, 0, "restarted 5 times"),
    ),
    (FabricDomainView("demo-0", "Ready", 4, 4, ("5b1c.1",)), FabricDomainView("demo-1", "Forming", 1, 4)),
    (ReasonView(ReasonCode.INSUFFICIENT_RESOURCES, "no place now", "add nodes", None,
                "2027-01-15T07:50:00Z"),),
    (ErrorView(ObjectRef("PodClique", "demo-1-router", "team"), "ERR_CREATE_POD", "quota\x1b[2J exceeded",
               "2027-01-15T07:59:00Z"),),
)  # fmt: skip
WIDE = """\
DynamoGraphDeployment team/demo: Waiting
1/2 replicas available, 1/2 gangs running, 4/8 pods ready
operator: operator-1 leads
graph: demo is pending: 1 of 2 components are ready
update: in progress since 5m: 1/2 replicas, 3/4 cliques updated, now replica 1
constraints: each replica in one rack, topology default, not enforced: the scheduler ignores them
components
  COMPONENT  KIND       READY  UPDATED
  Frontend   PodClique  1/1    1/1
roles
  ROLE    READY  UPDATED
  router  2/4    3/4
gangs
  GANG    PHASE    READY  DOMAIN   SCORE  CONSTRAINTS                  PROBLEM
  demo-1  Pending  0/4                    not enforced, by fallback 0  restarted 5 times
  demo-0  Running  4/4    rack r1  0.88   enforced
fabric domains
  DOMAIN  PHASE    NODES  PARTITIONS
  demo-1  Forming  1/4
  demo-0  Ready    4/4    5b1c.1
waits for
1. InsufficientResources, since 10m
   no place now
   -> add nodes
errors, the latest first
  PodClique demo-1-router, ERR_CREATE_POD, 60s ago: quota\N{REPLACEMENT CHARACTER}[2J exceeded
"""
NARROW = """\
DynamoGraphDeployment team/demo: Waiting
1/2 replicas available, 1/2 gangs
running, 4/8 pods ready
operator: operator-1 leads
graph: demo is pending: 1 of 2
  components are ready
update: in progress since 5m: 1/2
  replicas, 3/4 cliques updated, now
  replica 1
constraints: each replica in one rack,
  topology default, not enforced: the
  scheduler ignores them
components
  COMPONENT  KIND       READY  UPDATED
  Frontend   PodClique  1/1    1/1
roles
  ROLE    READY  UPDATED
  router  2/4    3/4
gangs
  GANG    PHASE    READY  DOMAIN
  demo-1  Pending  0/4
  demo-0  Running  4/4    rack r1
fabric domains
  DOMAIN  PHASE    NODES  PARTITIONS
  demo-1  Forming  1/4
  demo-0  Ready    4/4    5b1c.1
waits for
1. InsufficientResources, since 10m
   no place now
   -> add nodes
errors, the latest first
  PodClique demo-1-router,
    ERR_CREATE_POD, 60s ago: quota\N{REPLACEMENT CHARACTER}[2J
    exceeded
"""


def page(found: StatusView, width: int | None = None) -> str:
    return "".join(f"{line.text}\n" for line in status_lines(found, "lease", NOW, width))


@pytest.mark.parametrize(("width", "expected"), [(None, WIDE), (40, NARROW)], ids=["wide", "40 columns"])
def test_page_has_everything(width, expected):
    assert page(FULL, width) == expected


@pytest.mark.parametrize("width", [1, 10, 25, 60, 100])
def test_no_line_is_wider_than_the_terminal(width):
    assert max(map(cell_len, page(FULL, width).splitlines())) <= width


def test_gangs_beyond_a_page_are_counted():
    gangs = tuple(GangStatusView(f"demo-{i}", "Running", 1, 1) for i in range(timing.STATUS_ROWS + 2))
    assert "  and 2 more gangs\n" in page(StatusView(FULL.about, Verdict.HEALTHY, "", gangs=gangs))


def test_operator_that_does_not_lead_is_said():
    operator = OperatorView(False, "ns/lease", "operator-1", "2027-01-15T07:00:00Z", 3600)
    assert "operator: none leads, nothing is reconciled: Lease ns/lease was not renewed" in page(
        StatusView(FULL.about, Verdict.UNKNOWN, "", operator)
    )
