"""Shapes of clusters: parsing, and the nodes that follow from a shape."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grove.api.naming.external_keys import NVIDIA_GPU, NVIDIA_GPU_CLIQUE
from grove.local.cluster.cluster_shape import (
    BLOCK,
    HOST,
    RACK,
    ZONE,
    ClusterShape,
    node_manifests,
    parse_shape,
    shape_for,
)
from grove.local.errors import LocalError

SMALL = st.integers(min_value=1, max_value=4)


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("8", ClusterShape(1, 1, 1, 8)),
        ("4x8", ClusterShape(1, 1, 4, 8)),
        ("2x4x8", ClusterShape(1, 2, 4, 8)),
        ("2x2x4x8", ClusterShape(2, 2, 4, 8)),
        ("1X1x2x18x2", ClusterShape(1, 1, 2, 18, 2)),
    ],
)
def test_missing_numbers_are_outer_levels(text: str, shape: ClusterShape) -> None:
    assert parse_shape(text) == shape


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "2x2x4x8"),
        ("0x8", "2x2x4x8"),
        ("-1x8", "2x2x4x8"),
        ("2x2x2x2x2x2", "2x2x4x8"),
        ("racks", "2x2x4x8"),
        ("1x1x1x2x3", "NVLink cliques need at least as many hosts"),
        ("100x100x100", "at most 20000"),
    ],
)
def test_invalid_shape_is_rejected_with_example(text: str, message: str) -> None:
    with pytest.raises(LocalError, match="--shape") as error:
        parse_shape(text)
    assert message in str(error.value)


@given(SMALL, SMALL, SMALL, SMALL)
def test_shape_text_round_trips(zones: int, blocks: int, racks: int, hosts: int) -> None:
    shape = ClusterShape(zones, blocks, racks, hosts)
    assert parse_shape(str(shape)) == shape


@given(st.builds(ClusterShape, SMALL, SMALL, SMALL, SMALL))
def test_levels_nest_and_nodes_are_unique(shape: ClusterShape) -> None:
    labels = [node["metadata"]["labels"] for node in node_manifests(shape, shape.size, gpus=8)]
    assert len({label[HOST] for label in labels}) == shape.size
    for inner, outer in ((RACK, BLOCK), (BLOCK, ZONE), (NVIDIA_GPU_CLIQUE, RACK)):
        parents = {(label[inner], label[outer]) for label in labels}
        assert len(parents) == len({child for child, _ in parents}), f"a {inner} is in two {outer}"
    assert set(Counter(label[RACK] for label in labels).values()) == {shape.hosts}


def test_fifth_number_splits_racks_into_nvlink_cliques() -> None:
    nodes = node_manifests(parse_shape("1x1x2x6x3"), 12, gpus=4)
    cliques = Counter(node["metadata"]["labels"][NVIDIA_GPU_CLIQUE] for node in nodes)
    assert len(cliques) == 6
    assert set(cliques.values()) == {2}


def test_nodes_without_gpus_have_no_nvidia_labels() -> None:
    (node,) = node_manifests(shape_for(1), 1, gpus=0)
    assert not [key for key in node["metadata"]["labels"] if key.startswith("nvidia.com/")]
    assert NVIDIA_GPU not in node["status"]["allocatable"]


@given(st.integers(min_value=0, max_value=100))
def test_nodes_fill_one_rack_before_the_next(count: int) -> None:
    racks = Counter(n["metadata"]["labels"][RACK] for n in node_manifests(shape_for(count), count, gpus=1))
    assert sum(racks.values()) == count
    assert [size for size in racks.values() if size != 8] == ([count % 8] if count % 8 else [])
