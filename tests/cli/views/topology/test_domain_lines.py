"""Trees of topologies as text, at several widths."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from grove.cli.views.topology.domain_lines import bar_of, coloured_line, topology_lines
from grove.views.topology.domain_view import Gpus, topology_tree
from tests.views.topology.builders import CLUSTER, LEVELS

TREE = topology_tree("default", LEVELS, CLUSTER)
WIDE = """\
topology default: zone > rack > host
█ ours  ▒ others  ░ free  x cordoned or not ready
cluster             ███▒▒▒░░░░░░xxxx  18/56 free, 8 nodes, 1 not ready
├─ zone z1          █████▒▒▒▒░░░░xxx  10/40 free, 5 nodes, 1 cordoned, 1 tainted
│  ├─ rack r1       █████████▒░xxxxx  2/24 free, 3 nodes, 2 NVLink partitions
│  │  ├─ NVLink c1  ████████████▒▒░░  2/16 free, 2 nodes
│  │  ├─ NVLink c2  xxxxxxxxxxxxxxxx  0/8 free, 1 node
│  │  └─ 1 cordoned: a10
│  └─ rack r2       ▒▒▒▒▒▒▒▒░░░░░░░░  8/16 free, 2 nodes
│     └─ 1 tainted maintenance: b2
├─ zone z2          ▒░░░░░░░░xxxxxxx  8/16 free, 2 nodes, 1 not ready
│  └─ rack r1       ▒░░░░░░░░xxxxxxx  8/16 free, 2 nodes, NVLink c3
│     └─ 1 not ready: c1
└─ zone (no label)                    0/0 free, 1 node
free slots of GPUs   1  8  16  32  64
  in one zone       18  2   0   0   0
  in one rack       18  2   0   0   0
  in one host       18  2   0   0   0
"""
NARROW = """\
topology default: zone > rack > host
█ ours  ▒ others  ░ free  x cordoned or…
cluster             █▒░x  18/56 free
├─ zone z1          █▒░x  10/40 free
│  ├─ rack r1       █▒░x  2/24 free
│  │  ├─ NVLink c1  ██▒░  2/16 free
│  │  ├─ NVLink c2  xxxx  0/8 free
│  │  └─ 1 cordoned: a10
│  └─ rack r2       ▒▒░░  8/16 free
│     └─ 1 tainted maintenance: b2
├─ zone z2          ▒░xx  8/16 free
│  └─ rack r1       ▒░xx  8/16 free
│     └─ 1 not ready: c1
└─ zone (no label)        0/0 free
free slots of GPUs   1  8  16  32  64
  in one zone       18  2   0   0   0
  in one rack       18  2   0   0   0
  in one host       18  2   0   0   0
"""
WITH_NODES = """\
topology default: zone > rack > host
█ ours  ▒ others  ░ free  x cordoned or not ready
cluster             ███▒▒▒░░░░░░xxxx  18/56 free, 8 nodes, 1 not ready
├─ zone z1          █████▒▒▒▒░░░░xxx  10/40 free, 5 nodes, 1 cordoned, 1 tainted
│  ├─ rack r1       █████████▒░xxxxx  2/24 free, 3 nodes, 1 cordoned
│  │  ├─ host a1    ████████████████  0/8 free, NVLink c1
│  │  ├─ host a2    ████████▒▒▒▒░░░░  2/8 free, NVLink c1
│  │  └─ host a10   xxxxxxxxxxxxxxxx  0/8 free, cordoned, NVLink c2
│  └─ rack r2       ▒▒▒▒▒▒▒▒░░░░░░░░  8/16 free, 2 nodes, 1 tainted
│     ├─ host b1    ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒  0/8 free
│     └─ host b2    ░░░░░░░░░░░░░░░░  8/8 free, taint maintenance
├─ zone z2          ▒░░░░░░░░xxxxxxx  8/16 free, 2 nodes, 1 not ready
│  └─ rack r1       ▒░░░░░░░░xxxxxxx  8/16 free, 2 nodes, 1 not ready
│     ├─ host c1    ▒▒xxxxxxxxxxxxxx  0/8 free, not ready, NVLink c3
│     └─ host c2    ░░░░░░░░░░░░░░░░  8/8 free, NVLink c3
└─ zone (no label)                    0/0 free
free slots of GPUs   1  8  16  32  64
  in one zone       18  2   0   0   0
  in one rack       18  2   0   0   0
  in one host       18  2   0   0   0
"""


def drawn(width: int | None, **options: bool) -> str:
    return "".join(f"{line.text}\n" for line in topology_lines(TREE, width, **options))


def test_tree_on_80_columns():
    assert drawn(80) == WIDE


def test_tree_on_40_columns():
    assert drawn(40) == NARROW


def test_tree_with_nodes_lists_their_state():
    assert drawn(80, nodes=True) == WITH_NODES


@pytest.mark.parametrize("width", [1, 5, 12, 20, 33, 60, 100])
def test_no_line_is_wider_than_the_terminal(width):
    lines = topology_lines(TREE, width, nodes=True)
    assert max(cell_len(line.text) for line in lines) <= width


def test_colours_do_not_change_the_text():
    for line in topology_lines(TREE, 80):
        assert coloured_line(line).plain.rstrip() == line.text


@pytest.mark.parametrize(
    ("gpus", "cells", "bar"),
    [
        (Gpus(8, 4, 2, 2), 8, "████▒▒░░"),
        (Gpus(800, 1, 0, 799), 8, "█░░░░░░░"),
        (Gpus(100, 97, 1, 1, 1), 8, "█████▒░x"),
        (Gpus(), 4, "    "),
        (Gpus(8, 8), 0, ""),
        (Gpus(8, 2, 2, 2, 2), 2, "█▒"),
    ],
)
def test_bar_has_a_cell_for_each_use(gpus, cells, bar):
    assert bar_of(gpus, cells) == bar


def test_cluster_without_topology_says_so():
    lines = topology_lines(topology_tree("", (), CLUSTER), 80)
    assert lines[0].text == "no ClusterTopology: all nodes are one domain"
    assert not any("slots" in line.text for line in lines)
