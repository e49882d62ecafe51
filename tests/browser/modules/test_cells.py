"""What the cells of a host show: real use first, reservations in what is left."""

from __future__ import annotations

from typing import Any

import pytest

HOST = """async (cells, uses) => {
  const { fullNode } = await import("/static/js/wire.js");
  const { gpuText, nodeTotals } = await import("/static/js/map/use/totals.js");
  const node = fullNode({ gpus: 8, uses });
  return {
    runs: cells.cellRuns(node).map((run) => [run.kind, run.gang, run.to - run.from]),
    later: cells.hostUse(node).later.map((each) => [each.gang, each.gpus]),
    label: cells.mainGangs(node),
    lines: Object.fromEntries(cells.gangLines(node).map(({ gang, text }) => [gang, text])),
    text: gpuText(nodeTotals(node)),
  };
}"""


def use(gang: str, gpus: int, *, reserved: bool = False) -> dict[str, Any]:
    return {"gang": gang, "gpus": gpus, "pods": 1, "reserved": reserved}


def held(gang: str, gpus: int) -> dict[str, Any]:
    return use(gang, gpus, reserved=True)


@pytest.mark.parametrize(
    ("uses", "runs", "later", "label", "text"),
    [
        ([], [["free", "", 8]], [], [], "8 GPUs: 8 free"),
        ([held("n/a", 8), use("n/b", 8)], [["gang", "n/b", 8]], [["n/a", 8]], ["n/b"], "8 GPUs: 8 used"),
        (
            [held("n/a", 8), use("n/b", 4), use("", 2)],
            [["gang", "n/b", 4], ["foreign", "", 2], ["reserved", "n/a", 2]],
            [["n/a", 6]],
            ["n/b"],
            "8 GPUs: 4 used, 2 reserved, 2 foreign",
        ),
        (
            [held("n/a", 2)],
            [["reserved", "n/a", 2], ["free", "", 6]],
            [],
            ["n/a"],
            "8 GPUs: 2 reserved, 6 free",
        ),
        ([use("n/a", 0), use("n/b", 8)], [["gang", "n/b", 8]], [], ["n/b"], "8 GPUs: 8 used"),
        (
            [use("n/a", 4), use("n/b", 4), held("n/c", 1)],
            [["gang", "n/a", 4], ["gang", "n/b", 4]],
            [["n/c", 1]],
            ["n/a", "n/b"],
            "8 GPUs: 8 used",
        ),
        ([use("n/a", 0)], [["free", "", 8]], [], ["n/a"], "8 GPUs: 8 free"),
    ],
)
async def test_real_use_comes_before_reservations(call, uses, runs, later, label, text):
    found = await call("map/use/cells.js", HOST, uses)
    assert found["runs"] == runs
    assert found["later"] == later
    assert found["label"] == label
    assert found["text"] == text


async def test_every_gang_of_a_host_is_named(call):
    uses = [use("n/a", 0), use("n/b", 6), held("n/c", 3), held("n/d", 0)]
    lines = (await call("map/use/cells.js", HOST, uses))["lines"]
    assert lines == {
        "n/a": "no GPUs",
        "n/b": "6 GPUs",
        "n/c": "2 GPUs reserved, 1 GPU reserved for it when free",
        "n/d": "reserved, no GPUs",
    }
