"""The table of sets at different widths."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from grove.cli.views.set_table import table
from grove.views.age import age_text
from grove.views.set_view import FabricDomainView, SetView
from grove.views.topology_view import TopologyView
from tests.views.builders import a_simulator, view

SEEN = view(a_simulator())
SETS = [
    replace(SEEN, age_seconds=42, topology=TopologyView("local", "rack")),
    replace(
        SEEN,
        namespace="prod",
        name="llama-70b-disaggregated",
        available=0,
        members=(),
        age_seconds=None,
        errors=("pods is forbidden:\nexceeded quota gpus", "no topology"),
    ),
]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            {"namespaces": False},
            [
                "NAME                     AVAILABLE  GANGS  PODS  TOPOLOGY    AGE  ERRORS",
                "demo                     1/1        2/2    5/5   local/rack  42s  -",
                "llama-70b-disaggregated  0/1        0/0    0/0   -           -    "
                "pods is forbidden: exceeded quota gpus (and 1 more)",
            ],
        ),
        (
            {"namespaces": False, "width": 92},
            [
                "NAME                     AVAILABLE  GANGS  PODS  TOPOLOGY    ERRORS",
                "demo                     1/1        2/2    5/5   local/rack  -",
                "llama-70b-disaggregated  0/1        0/0    0/0   -           "
                "pods is forbidden: exceeded qu…",
            ],
        ),
        (
            {"namespaces": False, "width": 80},
            [
                "NAME                     AVAILABLE  GANGS  PODS  ERRORS",
                "demo                     1/1        2/2    5/5   -",
                "llama-70b-disaggregated  0/1        0/0    0/0   pods is forbidden: exceeded qu…",
            ],
        ),
        (
            {"namespaces": False, "width": 50},
            [
                "NAME                     AVAILABLE  PODS  ERRORS",
                "demo                     1/1        5/5   -",
                "llama-70b-disaggregated  0/1        0/0   pods is…",
            ],
        ),
        (
            {"namespaces": True, "width": 40},
            [
                "NAMESPACE  NAME                     AVA…",
                "ns         demo                     1/1…",
                "prod       llama-70b-disaggregated  0/1…",
            ],
        ),
    ],
    ids=["room", "92 columns", "80 columns", "50 columns", "40 columns and namespaces"],
)
def test_table_at_different_widths(options, expected):
    assert table(SETS, **options) == expected


def test_domains_have_a_column_if_any_set_has_some():
    (replica,) = SEEN.members
    ready, forming = (FabricDomainView(f"d-{phase}", phase, 0, 0) for phase in ("Ready", "Forming"))
    split = FabricDomainView("d-split", "Ready", 2, 2, ("a", "b"), "FabricSplit")
    with_domains = replace(SEEN, members=(replace(replica, fabric_domains=(ready, forming, split)),))
    head, first, second, *_ = (line.split() for line in table([with_domains, *SETS], namespaces=False))
    column = head.index("DOMAINS")
    assert (first[column], second[column]) == ("1/3", "-")


def test_errors_do_not_hide_columns_of_healthy_sets():
    healthy = replace(SETS[1], errors=())
    (heading, *_) = table([SETS[0], healthy], namespaces=False, width=73)
    assert heading == "NAME                     AVAILABLE  GANGS  PODS  TOPOLOGY    AGE  ERRORS"


def test_errors_of_groups_and_cliques_are_shown():
    (replica,) = SEEN.members
    clique, group = replica.cliques[0], replica.groups[0]
    broken = replace(
        replica, cliques=(replace(clique, errors=("a",)),), groups=(replace(group, errors=("b", "a")),)
    )
    seen: SetView = replace(SEEN, members=(broken,))
    assert table([seen], namespaces=False)[1].endswith("  b (and 1 more)")


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(None, "-"), (0, "0s"), (119, "119s"), (120, "2m"), (7199, "119m"), (7200, "2h"), (200_000, "2d")],
)
def test_age_units(seconds, shown):
    assert age_text(seconds) == shown


def test_wide_table_has_all_columns_and_errors():
    heading, first, second = table(SETS, namespaces=False, wide=True)
    assert heading.split() == [
        "NAME", "AVAILABLE", "GANGS", "PODS", "GROUPS", "NODES", "DOMAINS", "TOPOLOGY", "AGE", "ERRORS",
    ]  # fmt: skip
    nodes = {pod.node for pod in SEEN.pods}
    assert first.split() == [
        "demo", "1/1", "2/2", "5/5", "2/2", str(len(nodes)), "-", "local/rack", "42s", "-",
    ]  # fmt: skip
    assert second.endswith("pods is forbidden: exceeded quota gpus; no topology")
