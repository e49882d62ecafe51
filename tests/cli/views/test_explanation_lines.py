"""Explanations as text, at several widths."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from grove.cli.views.explanation_lines import explanation_lines, summary_lines
from grove.explanation.model import (
    ContainerView,
    DomainRow,
    EventView,
    Explanation,
    GangExplanation,
    Holder,
    ObjectRef,
    ReasonView,
    Remedy,
)
from grove.reasons.codes import ReasonCode

NOW = 1_800_000_000.0  # 2027-01-15T08:00:00Z
GPU = "nvidia.com/gpu"
SET = ObjectRef("PodCliqueSet", "demo", "team")
WAITING = Explanation(
    SET,
    "1/2 replicas available, 1/2 gangs running, 4/8 pods ready",
    True,
    (
        ReasonView(
            ReasonCode.INSUFFICIENT_RESOURCES,
            "no place now: rack z/r3: demo-1: 2 nodes with taint maintenance, needs 16 GPUs, 11 free",
            "add nodes, delete other workloads, or lower requests",
            ObjectRef("PodGang", "demo-1", "team"),
            "2027-01-15T07:55:00Z",
        ),
        ReasonView(
            ReasonCode.IMAGE_PULL_FAILED,
            "container main cannot pull its image",
            "correct the image, its registry or imagePullSecrets",
            ObjectRef("Pod", "demo-0-worker-x7f", "team"),
        ),
    ),
    (
        GangExplanation(
            "demo-1",
            4,
            "rack",
            (
                DomainRow("rack z/r3", 4, 2, {"tainted maintenance": 2}, GPU, 11, 16, 16, 2, 4),
                DomainRow("rack z/r10", 4, 4, {}, GPU, 0, 32, 16, 0, 4, {"ml/train-2": 3}),
            ),
            3,
            (Holder(ObjectRef("Pod", "train-0", "ml"), "n1", GPU, 5, 10, ""),),
            7,
            (
                Remedy("removeTaint", "tolerate taint maintenance, or remove it from n3, n4"),
                Remedy("addNodes", "add 2 more nodes like n1", count=2),
            ),
        ),
    ),
    (ContainerView("demo-0-worker-x7f", "main", "ImagePullBackOff", "no such image", 3),),
    (
        EventView(
            "2027-01-15T07:50:00Z",
            600,
            "Warning",
            "Failed",
            ObjectRef("Pod", "demo-0-worker-x7f"),
            "not found",
            9,
        ),
    ),
    {"events": 2, "gangs": 1},
)
WIDE = """\
PodCliqueSet team/demo: 1/2 replicas available, 1/2 gangs running, 4/8 pods
ready
1. InsufficientResources, PodGang demo-1, since 5m
   no place now: rack z/r3: demo-1: 2 nodes with taint maintenance, needs 16
   GPUs, 11 free
   -> add nodes, delete other workloads, or lower requests
2. ImagePullFailed, Pod demo-0-worker-x7f
   container main cannot pull its image
   -> correct the image, its registry or imagePullSecrets
gang demo-1: 4 pods, in one rack, needs 16 nvidia.com/gpu
  DOMAIN      NODES  FREE      SHORT  PODS FIT  NOT USABLE
  rack z/r3   4      11 of 16  5      2 of 4    2 tainted maintenance
  rack z/r10  4      0 of 32   16     0 of 4    3 held for ml/train-2
  and 3 more domains
  what holds the rest
    ml/train-0: 5 on n1, priority 10
    and 7 more pods
  what would make room, each alone
    - tolerate taint maintenance, or remove it from n3, n4
    - add 2 more nodes like n1
and 1 more gang that waits for nodes
containers
  demo-0-worker-x7f main: ImagePullBackOff, 3 restarts: no such image
events, the oldest first
  10m x9 Failed Pod demo-0-worker-x7f: not found
  and 2 more older events
"""
NARROW = """\
PodCliqueSet team/demo: 1/2 replicas
available, 1/2 gangs running, 4/8 pods
ready
1. InsufficientResources, PodGang
   demo-1, since 5m
   no place now: rack z/r3: demo-1: 2
   nodes with taint maintenance, needs
   16 GPUs, 11 free
   -> add nodes, delete other workloads,
      or lower requests
2. ImagePullFailed, Pod
   demo-0-worker-x7f
   container main cannot pull its image
   -> correct the image, its registry or
      imagePullSecrets
gang demo-1: 4 pods, in one rack, needs
16 nvidia.com/gpu
  DOMAIN      FREE      SHORT  NOT USAB…
  rack z/r3   11 of 16  5      2 tainte…
  rack z/r10  0 of 32   16     3 held f…
  and 3 more domains
  what holds the rest
    ml/train-0: 5 on n1, priority 10
    and 7 more pods
  what would make room, each alone
    - tolerate taint maintenance, or
      remove it from n3, n4
    - add 2 more nodes like n1
and 1 more gang that waits for nodes
containers
  demo-0-worker-x7f main:
    ImagePullBackOff, 3 restarts: no
    such image
events, the oldest first
  10m x9 Failed Pod demo-0-worker-x7f:
    not found
  and 2 more older events
"""


def drawn(width: int | None) -> str:
    return "".join(f"{line.text}\n" for line in explanation_lines(WAITING, NOW, width))


def test_explanation_on_80_columns():
    assert drawn(80) == WIDE


def test_explanation_on_40_columns():
    assert drawn(40) == NARROW


@pytest.mark.parametrize("width", [1, 12, 25, 60, 120])
def test_no_line_is_wider_than_the_terminal(width):
    assert max(cell_len(line.text) for line in explanation_lines(WAITING, NOW, width)) <= width


def test_object_that_does_not_wait_is_two_lines():
    lines = [line.text for line in explanation_lines(Explanation(SET, "8/8 pods ready", False), NOW)]
    assert lines == ["PodCliqueSet team/demo: 8/8 pods ready", "nothing waits"]


def test_unknown_reason_is_said():
    lines = [line.text for line in explanation_lines(Explanation(SET, "0/8 pods ready", True), NOW)]
    assert lines[-1] == "no reason is known yet"


def test_summary_has_the_first_reason():
    assert summary_lines([WAITING, Explanation(SET, "0/8 pods ready", True)], 72) == [
        "NAMESPACE  NAME  REASON                 MESSAGE",
        "team       demo  InsufficientResources  no place now: rack z/r3: demo-1…",
        "team       demo  -                      0/8 pods ready",
    ]
