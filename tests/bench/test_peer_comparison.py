"""Our operator beside a peer: the rows of the table, and how calls and processes are attributed."""

from __future__ import annotations

import json

import pytest
from bench.core.process_cost import ProcessStat, call, process_tree
from bench.peer.comparison import Figure, comparison, figures

OPERATOR = {
    "pods": 10, "created": 1.0, "ready": 3.0, "cpu": 0.5, "rss_mib": 50.0, "calls": 35, "idle_calls": 0,
    "annotation_calls": 0, "deleted_half": 2.0, "deleted": 4.0, "pods_deleted": 3.5,
}  # fmt: skip
FLOORS = {
    "floor": {"created": 1.0, "ready": 2.0, "cpu": 1.0, "deleted_half": 1.0, "deleted": 2.0},
}
UPDATED = {"pods": 70, "calls": 560, "seconds": 8.0}


def cells(table) -> dict[str, list[str]]:
    columns = [list(column.cells) for column in table.columns]
    return {what: list(rest) for what, *rest in zip(*columns, strict=True)}


def test_each_operator_is_compared_with_its_own_floor():
    peer = {"command": "manager", "floor": {"ready": 4.0}, "operator": {**OPERATOR, "ready": 12.0}}
    table = comparison({"ours": OPERATOR, **FLOORS, "peer": peer})
    assert [column.header for column in table.columns][5] == "peer: manager"
    rows = cells(table)
    assert rows["pods ready, s"] == ["2.00", "3.00", "1.50", "4.00", "12.00", "3.00"]
    assert rows["calls per pod"] == ["", "3.50", "", "", "3.50", ""]


def test_figure_that_one_operator_lacks_is_left_empty():
    rows = cells(comparison({"updated": UPDATED, "peer": {"command": "manager"}}))
    assert rows["calls for each pod of a rolling update"] == ["", "8.00", "", "", "", ""]


def test_floors_without_an_operator_have_no_figures():
    assert figures(FLOORS) == {}


def test_figure_of_an_empty_floor_has_no_ratio():
    assert Figure(1.0, 0.0).cells == ("", "1.00", "")


@pytest.mark.parametrize(
    ("change", "counted"),
    [
        ({}, "create pods"),
        ({"user": {"username": "admin"}}, ""),
        ({"user": {"username": "admin"}, "impersonatedUser": {"username": "peer"}}, "create pods"),
        ({"objectRef": {"resource": "pods", "subresource": "status"}}, "create pods/status"),
        ({"verb": "watch"}, ""),
        ({"objectRef": {"resource": "leases"}}, ""),
    ],
)
def test_calls_are_attributed_by_user(change, counted):
    event = {"verb": "create", "user": {"username": "peer"}, "objectRef": {"resource": "pods"}}
    assert call(json.dumps(event | change), "peer") == counted


def test_process_tree_has_descendants_and_the_session():
    found = process_tree(
        10,
        [
            ProcessStat(1, 0, 1, 9.0),
            ProcessStat(10, 1, 10, 1.0),
            ProcessStat(11, 10, 10, 1.0),
            ProcessStat(12, 11, 12, 1.0),
            ProcessStat(13, 1, 10, 1.0),
            ProcessStat(14, 1, 14, 1.0),
        ],
    )
    assert sorted(each.pid for each in found) == [10, 11, 12, 13]


def test_process_tree_of_an_exited_process_is_an_error():
    with pytest.raises(ProcessLookupError):
        process_tree(10, [ProcessStat(11, 10, 10, 1.0)])
