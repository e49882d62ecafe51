"""The map's layout: each host once, nothing overlaps, and nothing is wider than the window."""

from __future__ import annotations

import pytest

WIDTHS = [320, 390, 800, 1440]
CELLS = [2, 6, 14, 18]
LEVELS = [{"name": name, "label": name} for name in ("zone", "block", "rack")]
LAY_OUT = """async (layout, [nodes, levels, width, cell]) => {
  const wire = await import("/static/js/wire.js");
  const { domainTree } = await import("/static/js/map/tree.js");
  const full = Object.fromEntries(Object.entries(nodes).map(([name, node]) => [name, wire.fullNode(node)]));
  const root = domainTree(full, levels);
  const { height } = layout.layout(root, width, cell);
  const plain = ({ x, y, w, h }) => ({ x, y, w, h });
  const flat = (box) => ({
    ...plain(box), name: box.name, totals: box.totals,
    hosts: box.hosts.map((host) => ({ name: host.name, ...plain(host) })), boxes: box.boxes.map(flat),
  });
  return { height, root: flat(root) };
}"""
SLACK = 0.01


def node(zone: str, block: str, rack: str, **more: object) -> dict[str, object]:
    labels = {"zone": zone, "block": block, "rack": rack}
    return {"gpus": 8, "domains": {label: name for label, name in labels.items() if name}, **more}


def regular() -> dict[str, dict[str, object]]:
    return {
        f"z{z}-b{b}-r{r}-h{h}": node(f"z{z}", f"z{z}-b{b}", f"z{z}-b{b}-r{r}")
        for z in range(2)
        for b in range(2)
        for r in range(3)
        for h in range(8)
    }


def irregular() -> dict[str, dict[str, object]]:
    """Labels are missing, racks differ in size, hosts have no GPUs or a thousand, partitions cross racks."""
    return {
        **{f"large-{number}": node("z", "b", "large") for number in range(65)},
        "alone": node("z", "b", "small"),
        "no-rack": node("z", "b", ""),
        "no-block": node("z", "", "r"),
        "no-label": node("", "", ""),
        "cpu": node("z", "b", "small", gpus=0),
        "many": node("z", "b", "small", gpus=1000),
        "negative": node("z", "b", "small", gpus=-1),
        "p1": node("z", "b", "r1", partition="one"),
        "p2": node("z", "b", "r2", partition="one"),
        "p3": node("z", "b", "r2", partition="two"),
    }


def hosts(box: dict) -> list[dict]:
    return [*box["hosts"], *(each for child in box["boxes"] for each in hosts(child))]


def boxes(box: dict) -> list[dict]:
    return [box, *(each for child in box["boxes"] for each in boxes(child))]


def overlap(one: dict, other: dict) -> bool:
    return (
        one["x"] + one["w"] > other["x"] + SLACK
        and other["x"] + other["w"] > one["x"] + SLACK
        and one["y"] + one["h"] > other["y"] + SLACK
        and other["y"] + other["h"] > one["y"] + SLACK
    )


def inside(inner: dict, outer: dict) -> bool:
    return (
        inner["x"] >= outer["x"] - SLACK
        and inner["y"] >= outer["y"] - SLACK
        and inner["x"] + inner["w"] <= outer["x"] + outer["w"] + SLACK
        and inner["y"] + inner["h"] <= outer["y"] + outer["h"] + SLACK
    )


@pytest.mark.parametrize("nodes", [regular, irregular], ids=["regular", "irregular"])
async def test_layout_holds_all_hosts_without_overlap(call, nodes):
    given = nodes()
    for width in WIDTHS:
        for cell in CELLS:
            found = await call("map/layout.js", LAY_OUT, [given, LEVELS, width, cell])
            check(found["root"], set(given), width, cell)


def check(root: dict, names: set[str], width: int, cell: int) -> None:
    about = f"{width} px, cells of {cell}"
    found = hosts(root)
    assert sorted(each["name"] for each in found) == sorted(names), about
    for box in boxes(root):
        parts = [*box["hosts"], *box["boxes"]]
        for at, part in enumerate(parts):
            assert part["w"] > 0, f"{part['name']}, {about}"
            assert part["h"] > 0, f"{part['name']}, {about}"
            assert inside(part, box), f"{part['name']} in {box['name']}, {about}"
            for other in parts[at + 1 :]:
                assert not overlap(part, other), f"{part['name']} and {other['name']}, {about}"
    assert max(each["x"] + each["w"] for each in found) <= width + SLACK, about


async def test_empty_cluster_has_a_layout(call):
    found = await call("map/layout.js", LAY_OUT, [{}, LEVELS, 800, 14])
    assert hosts(found["root"]) == []


async def test_totals_of_domain_are_those_of_its_hosts(call):
    nodes = regular()
    nodes["z0-b0-r0-h0"] |= {
        "cordoned": True,
        "uses": [
            {"gang": "a/g", "gpus": 4, "pods": 1},
            {"gang": "a/g", "gpus": 1, "pods": 1, "reserved": True},
            {"gpus": 2, "pods": 1},
        ],
    }
    nodes["z0-b0-r0-h1"] |= {"uses": [{"gpus": 100, "pods": 1}]}
    totals = (await call("map/layout.js", LAY_OUT, [nodes, LEVELS, 800, 14]))["root"]["totals"]
    assert totals["hosts"] == len(nodes)
    assert totals["gpus"] == 8 * len(nodes)
    assert (totals["used"], totals["reserved"], totals["foreign"]) == (4, 1, 10)
    assert totals["blocked"] == 1, "of the cordoned host"
    assert totals["free"] == totals["gpus"] - 16
    assert (totals["cordoned"], totals["tainted"], totals["notReady"]) == (1, 0, 0)


async def test_hosts_of_a_block_are_in_the_order_of_their_racks(call):
    """Names of hosts and NVLink partitions say nothing about their racks."""
    nodes = {
        f"{'dbca'[r]}-{h}": node("z", "b", f"r{[2, 10, 1, 9][r]}", partition=f"{r * 7919 % 13:x}")
        for r in range(4)
        for h in range(2)
    }
    order = """async (tree, [nodes, levels]) => {
      const { fullNode } = await import("/static/js/wire.js");
      const named = Object.entries(nodes).map(([name, node]) => [name, fullNode(node)]);
      const full = Object.fromEntries(named);
      const root = tree.domainTree(full, levels.slice(0, 2), levels);
      return tree.hostsOf(root).map((host) => host.node.domains.rack);
    }"""
    found = await call("map/tree.js", order, [nodes, LEVELS])
    assert found == [rack for rack in ("r1", "r2", "r9", "r10") for _ in range(2)]


async def test_no_box_is_much_wider_than_what_it_holds(call):
    for width in WIDTHS:
        found = await call("map/layout.js", LAY_OUT, [regular(), LEVELS, width, 14])
        for box in boxes(found["root"])[1:]:
            edge = max(part["x"] + part["w"] for part in [*box["hosts"], *box["boxes"]])
            assert box["x"] + box["w"] - edge < hosts(box)[0]["w"], f"{box['name']}, {width} px"


async def test_domain_is_found_by_its_level_and_path(call):
    """Racks of two blocks may have the same name, and a block the name of a rack."""
    nodes = {"a": node("z", "b1", "1"), "b": node("z", "b2", "1"), "c": node("z", "1", "2")}
    find = """async (tree, [nodes, levels, keys]) => {
      const { fullNode } = await import("/static/js/wire.js");
      const named = Object.entries(nodes).map(([name, node]) => [name, fullNode(node)]);
      const full = Object.fromEntries(named);
      const root = tree.domainTree(full, levels);
      const found = keys.map((key) => tree.findDomain(root, key));
      return found.map((box) => box && tree.domainKey(box));
    }"""
    keys = {
        "rack/z/b2/1": "rack/z/b2/1",
        "rack/1": "rack/z/b1/1",
        "block/1": "block/z/1",
        "1": "block/z/1",
        "b2": "block/z/b2",
        "rack/b2": None,
        "": None,
        "/": None,
    }
    assert await call("map/tree.js", find, [nodes, LEVELS, list(keys)]) == list(keys.values())
