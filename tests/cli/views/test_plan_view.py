"""The report of `grove plan` as text."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from grove import timing
from grove.cli.views.plan_view import plan_rows
from grove.cli.views.text_layout import lines
from grove.dry_run.model import (
    AdmissionVerdict,
    Missing,
    ObjectCount,
    PlannedGang,
    PlannedUnit,
    PlanReport,
    UpdatePlan,
    Verdict,
    WorkloadPlan,
)
from grove.reasons.placement import NEVER_FITS

RACK = "topology.kubernetes.io/rack"
ALLOWED = AdmissionVerdict(True, "the API server (dry run)")


def shown(*plans: WorkloadPlan, width: int | None = None, unread: tuple[str, ...] = ()) -> str:
    report = PlanReport("here", Verdict.FITS, plans, unread)
    found = (line.text for row in plan_rows(report) for line in lines(row, width))
    return "\n".join(found) + "\n"


def a_plan(verdict: Verdict = Verdict.FITS, **fields: object) -> WorkloadPlan:
    given = {"action": "create", "admission": ALLOWED} | fields
    return WorkloadPlan(kind="PodCliqueSet", namespace="team", name="chat", verdict=verdict, **given)  # type: ignore[arg-type]


def unit(name: str, pods: int, *domain: str, nodes: int = 1) -> PlannedUnit:
    return PlannedUnit(name, pods, nodes, domain, RACK if domain else "")


PLACED = PlannedGang(
    "chat-0",
    4,
    True,
    units=(unit("chat-0", 4, "z0", "r1", nodes=2), unit("chat-0-decode", 3, "z0", "r1", nodes=2)),
    fallback=1,
    after=30,
    preempts=True,
    unplaced=1,
)
DEPENDS = PlannedGang("chat-1", 1, True, "chat-0", units=(unit("chat-1", 1),), depends=True)
WAITS = PlannedGang("chat-2", 2, False, "chat-1", message="waits for base gang chat-1")
GAVE_UP = PlannedGang("chat-3", 2, False, gave_up=True, message="the search was stopped at its limit")
LACKS = PlannedGang(
    "chat-4",
    8,
    False,
    refused=True,
    message="no place now",
    missing=(
        Missing(("z0", "r0"), RACK, "chat-4", "Taint", "2 nodes with taint maintenance"),
        Missing(("z0", "r0"), RACK, "chat-4", "Insufficient", "needs 64 nvidia.com/gpu, 48 free"),
        Missing((), "", "chat-4", "TooLarge", "needs 8 pods, 6 would fit if it were empty"),
    ),
)
UPDATE = UpdatePlan(tuple(f"chat-0-worker-{number}" for number in range(14)), 2, 1, complete=False)
EVERYTHING = a_plan(
    Verdict.DOES_NOT_FIT,
    action="update",
    admission=AdmissionVerdict(True, "the API server (dry run)", warnings=("spec.x is deprecated",)),
    gangs=(PLACED, DEPENDS, WAITS, GAVE_UP, LACKS),
    objects=(
        ObjectCount("Pod", created=("a", "b"), deleted=("c",)),
        ObjectCount("PodClique", created=("d",), changed=("e", "f")),
    ),
    update=UPDATE,
    fabric_domains=("chat-0",),
    claims=("chat-0-weights",),
    errors=("ConfigMap tokens does not exist",),
    notes=("PriorityClass urgent is not known here: planned with priority 0",),
    max_replicas=1,
)
TEXT = """\
PodCliqueSet team/chat  does not fit, update
├─ admission  allowed by the API server (dry run)
├─ warning  spec.x is deprecated
├─ replicas  at most 1 fits now
├─ creates  2 Pods, 1 PodClique
├─ changes  2 PodCliques
├─ deletes  1 Pod
├─ update  14 units replaced, at least 1 of 2 replicas available, not followed to its end
│  ├─ 1  chat-0-worker-0
│  ├─ 2  chat-0-worker-1
│  ├─ 3  chat-0-worker-2
│  ├─ 4  chat-0-worker-3
│  ├─ 5  chat-0-worker-4
│  ├─ 6  chat-0-worker-5
│  ├─ 7  chat-0-worker-6
│  ├─ 8  chat-0-worker-7
│  ├─ 9  chat-0-worker-8
│  ├─ 10  chat-0-worker-9
│  ├─ 11  chat-0-worker-10
│  ├─ 12  chat-0-worker-11
│  └─ …  and 2 more
├─ fabric domain  chat-0
├─ claim  chat-0-weights
├─ gang chat-0  4 pods on 2 nodes, rack z0/r1, by fallback 1 after 30 s, preempts pods of a lower priority, \
1 pod beyond the minimum without a node
│  └─ chat-0-decode  3 pods on 2 nodes, rack z0/r1
├─ gang chat-1  1 pod on 1 node, the cluster, depends on the nodes that earlier gangs get
├─ gang chat-2  waits for base gang chat-1
├─ gang chat-3  the search was stopped at its limit
├─ gang chat-4  8 pods do not fit
│  ├─ rack z0/r0  chat-4: 2 nodes with taint maintenance, needs 64 nvidia.com/gpu, 48 free
│  └─ the cluster  chat-4: needs 8 pods, 6 would fit if it were empty
├─ error  ConfigMap tokens does not exist
└─ note  PriorityClass urgent is not known here: planned with priority 0
"""
NARROW = """\
PodCliqueSet team/chat  does not fit
├─ admission  allowed by the API server…
├─ warning  spec.x is deprecated
├─ replicas  at most 1 fits now
├─ creates  2 Pods, 1 PodClique
├─ changes  2 PodCliques
├─ deletes  1 Pod
├─ update  14 units replaced
│  ├─ 1  chat-0-worker-0
│  ├─ 2  chat-0-worker-1
│  ├─ 3  chat-0-worker-2
│  ├─ 4  chat-0-worker-3
│  ├─ 5  chat-0-worker-4
│  ├─ 6  chat-0-worker-5
│  ├─ 7  chat-0-worker-6
│  ├─ 8  chat-0-worker-7
│  ├─ 9  chat-0-worker-8
│  ├─ 10  chat-0-worker-9
│  ├─ 11  chat-0-worker-10
│  ├─ 12  chat-0-worker-11
│  └─ …  and 2 more
├─ fabric domain  chat-0
├─ claim  chat-0-weights
├─ gang chat-0  4 pods on 2 nodes, rack…
│  └─ …-decode  3 pods on 2 nodes, rack…
├─ gang chat-1  1 pod on 1 node, the cl…
├─ gang chat-2  waits for base gang cha…
├─ gang chat-3  the search was stopped …
├─ gang chat-4  8 pods do not fit
│  ├─ rack z0/r0  chat-4: 2 nodes with …
│  └─ the cluster  chat-4: needs 8 pods…
├─ error  ConfigMap tokens does not exi…
└─ note  PriorityClass urgent is not kn…
"""


def test_everything_that_a_plan_says() -> None:
    assert shown(EVERYTHING) == TEXT


def test_forty_columns_keep_the_verdict_and_names() -> None:
    assert shown(EVERYTHING, width=40) == NARROW


@pytest.mark.parametrize(
    ("verdict", "admission", "text"),
    [
        (
            Verdict.REJECTED,
            AdmissionVerdict(False, "the rules of this grove", "spec.replicas: must be a number"),
            "PodCliqueSet team/chat  rejected\n"
            "└─ admission  rejected by the rules of this grove: spec.replicas: must be a number\n",
        ),
        (
            Verdict.UNKNOWN,
            AdmissionVerdict(False, "the API server (dry run)", "webhook: connection refused", known=False),
            "PodCliqueSet team/chat  cannot be known, create\n"
            "└─ admission  cannot be known by the API server (dry run): webhook: connection refused\n",
        ),
    ],
)
def test_verdicts_without_a_plan(verdict, admission, text) -> None:
    action = "rejected" if verdict is Verdict.REJECTED else "create"
    assert shown(a_plan(verdict, action=action, admission=admission)) == text


def test_topology_has_no_verdict() -> None:
    found = WorkloadPlan("ClusterTopology", "", "racks", "unchanged", Verdict.FITS, ALLOWED)
    assert shown(found).startswith("ClusterTopology racks  unchanged\n")


def test_what_was_not_read_comes_last() -> None:
    text = shown(a_plan(), unread=("pods: cannot be decoded: team/x",))
    assert text.endswith("(dry run)\nnot read  pods: cannot be decoded: team/x\n")


@pytest.mark.parametrize(
    ("most", "words"),
    [
        (0, "at most 0 fit now"),
        (1, "at most 1 fits now"),
        (timing.PLANNED_REPLICAS, f"{timing.PLANNED_REPLICAS} or more fit now"),
    ],
)
def test_most_replicas_that_fit(most, words) -> None:
    assert shown(a_plan(max_replicas=most)).splitlines()[-1] == f"└─ replicas  {words}"


def test_gangs_that_lack_the_same_share_a_line() -> None:
    never = replace(LACKS, name="a", pods=1, message=f"{NEVER_FITS}: too large", missing=LACKS.missing[2:])
    alike = [replace(never, name=name) for name in ("b", "c")]
    gang = "├─ gang a  1 pod does not fit, even if the cluster were empty"
    missing = "│  └─ the cluster  chat-4: needs 8 pods, 6 would fit if it were empty"
    for others, line in (
        (alike[:1], "1 more gang  lacks the same: b"),
        (alike, "2 more gangs  lack the same: b, c"),
    ):
        assert shown(a_plan(gangs=(never, *others))).splitlines()[2:] == [gang, missing, f"└─ {line}"]
