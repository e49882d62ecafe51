"""The drawing of racks: letters of gangs on hosts, at several widths, without colours."""

from __future__ import annotations

import io
from collections.abc import Iterable

import pytest
from rich.cells import cell_len
from rich.console import Console

from grove.api.meta import ObjectMeta
from grove.api.types.kubernetes_objects import Node
from grove.cli.commands.demo import SHAPE
from grove.cli.views.racks.rack_view import drawing, racks
from grove.local.cluster.cluster_shape import RACK, node_manifests, parse_shape
from grove.views.set_view import CliqueView, GangView, PodView, ReplicaView, SetView
from tests.shared import ROOT


def nodes(shape: str) -> list[Node]:
    found = parse_shape(shape)
    return [
        Node(metadata=ObjectMeta(name=each["metadata"]["name"], labels=each["metadata"]["labels"]))
        for each in node_manifests(found, found.size, 8)
    ]


def a_view(name: str, *gangs: tuple[GangView, Iterable[str]]) -> SetView:
    """A set with one replica: gangs, each with the nodes of its pods."""
    cliques = tuple(
        CliqueView(
            f"{gang.name}-worker",
            0,
            gang.pods,
            gang.pods,
            gang.name,
            tuple(PodView(f"p{i}", "ready", node) for i, node in enumerate(on)),
        )
        for gang, on in gangs
    )
    replica = ReplicaView(0, tuple(gang for gang, _ in gangs), cliques)
    return SetView("default", name, 1, 1, members=(replica,))


def drawn(found: list[Node], views: Iterable[SetView], width: int = 80) -> list[str]:
    return [line.plain.rstrip() for line in drawing(found, views, width)]


DEMO = a_view(
    "demo",
    (GangView("demo-0", "Running", 3), ["z0-b0-r0-h0", "z0-b0-r0-h0", "z0-b0-r0-h1"]),
    (GangView("demo-0-decode-0", "Running", 2), ["z0-b0-r0-h1", "z0-b0-r1-h3"]),
)
WAITING = a_view(
    "training", (GangView("training-0", "Pending", 8, "no place now: rack r0: 0 free; rack r1: 8 free"), [""])
)


def test_drawing_shows_gangs_on_hosts():
    assert drawn(nodes("2x4"), [DEMO, WAITING]) == [
        "rack z0-b0-r0  4 hosts, 2 in use",
        "  ┌─h0──┬─h1──┬─h2──┬─h3──┐",
        "  │ A2  │ A B │     │     │",
        "  └─────┴─────┴─────┴─────┘",
        "rack z0-b0-r1  4 hosts, 1 in use",
        "  ┌─h0──┬─h1──┬─h2──┬─h3──┐",
        "  │     │     │     │ B   │",
        "  └─────┴─────┴─────┴─────┘",
        "  A  demo-0  3 pods in rack z0-b0-r0",
        "  B  demo-0-decode-0  2 pods in racks z0-b0-r0, z0-b0-r1",
        "  C  training-0  8 pods, no node yet",
        "     no place now: rack r0: 0 free",
        "     rack r1: 8 free",
    ]


def test_gang_in_part_is_counted():
    part = a_view("demo", (GangView("demo-0", "Pending", 3), ["z0-b0-r0-h0", ""]))
    assert drawn(nodes("1x1"), [part])[-1] == "  A  demo-0  1 of 3 pods in rack z0-b0-r0"


def test_hosts_wrap_in_a_narrow_terminal():
    assert drawn(nodes("1x3"), [DEMO], 20)[:7] == [
        "rack z0-b0-r0  3 ho…",
        "  ┌─h0──┬─h1──┐",
        "  │ A2  │ A B │",
        "  └─────┴─────┘",
        "  ┌─h2──┐",
        "  │     │",
        "  └─────┘",
    ]


@pytest.mark.parametrize("width", [1, 20, 40, 80])
@pytest.mark.parametrize("shape", ["1x1", "1x12x40", "2x2x1x8"])
def test_drawing_fits_the_width(shape: str, width: int):
    lines = drawn(nodes(shape), [DEMO, WAITING], width)
    assert max(map(cell_len, lines)) <= max(width, 20)


def test_nodes_without_labels_are_drawn():
    bare = Node(metadata=ObjectMeta(name="worker"))
    assert drawn([bare], [])[0] == "rack ?  1 host, 0 in use"
    assert drawn([], []) == []


def test_more_gangs_than_letters_are_drawn():
    many = a_view("demo", *((GangView(f"g{i}", "Running", 1), ["z0-b0-r0-h0"]) for i in range(60)))
    lines = drawn(nodes("1x1"), [many])
    assert [line.split()[0] for line in lines[-60:-58]] == ["A", "B"]
    assert lines[-1].endswith("g59  1 pod in rack z0-b0-r0")
    assert "…" in lines[2]


def test_racks_and_hosts_are_in_order_of_their_numbers():
    shuffled = sorted(nodes("12x11"), key=lambda node: node.metadata.name[::-1])
    found = racks(shuffled)
    assert [rack for *_, rack in found] == [f"z0-b0-r{i}" for i in range(12)]
    (first, *_) = found.values()
    assert [node.metadata.name for node in first] == [f"z0-b0-r0-h{i}" for i in range(11)]
    assert {node.metadata.labels[RACK] for node in first} == {"z0-b0-r0"}


def test_drawing_on_the_page_is_that_of_the_demo():
    def on(rack: str, *hosts: int) -> list[str]:
        return [f"{rack}-h{host}" for host in hosts]

    first, second = "z0-b0-r0", "z0-b0-r1"
    demo = a_view(
        "demo",
        (GangView("demo-0", "Running", 7), on(first, 0, 1, 2, 4, 5, 6, 7)),
        (GangView("demo-0-decode-0", "Running", 2), on(second, 2, 3)),
        (GangView("demo-0-decode-1", "Running", 2), on(second, 0, 1)),
        (GangView("demo-0-prefill-0", "Running", 3), on(first, 0, 2, 3)),
    )
    lacks = "training-2: needs 64 nvidia.com/gpu"
    training = a_view(
        "training",
        (GangView("training-0", "Running", 8), on("z0-b1-r0", *range(8))),
        (GangView("training-1", "Running", 8), on("z0-b1-r1", *range(8))),
        (
            GangView(
                "training-2",
                "Pending",
                8,
                f"no place now: rack z0/z0-b0/{second}: {lacks}, 32 free; "
                f"rack z0/z0-b0/{first}: {lacks}, 0 free; "
                f"rack z0/z0-b1/z0-b1-r0: {lacks}, 0 free; and 1 more",
            ),
            [],
        ),
    )
    page = (ROOT / "docs/placement.md").read_text()
    assert "\n".join(drawn(nodes(SHAPE), [demo, training])) == page.split("```\n")[1].rstrip()


def test_drawing_without_colours_has_no_escapes():
    console = Console(file=io.StringIO(), width=80)
    for line in drawing(nodes("1x2"), [DEMO], 80):
        console.print(line, no_wrap=True)
    assert "\x1b" not in console.file.getvalue()  # type: ignore[attr-defined]
