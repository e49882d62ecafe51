"""`grove topology` on snapshot files."""

from __future__ import annotations

import json
from functools import partial

import pytest

from grove.kube.client.resource import NODES
from tests.cli.commands.inspection.snapshots import (
    a_cluster,
    a_pod,
    node_of,
    only_namespace,
    without,
    written,
)


@pytest.fixture
def run(run_command):
    """Runs `grove topology`; returns exit code, output and errors."""
    return partial(run_command, "topology")


HOSTS = [f"z0-b0-r{rack}-h{host}" for rack in (0, 1) for host in (0, 1)]


def test_pods_are_ours_or_those_of_others(run, tmp_path):
    pods = [a_pod("a", HOSTS[0], 4, gang="demo-0"), a_pod("b", HOSTS[0], 1), a_pod("c", HOSTS[1], 8)]
    code, out, err = run("--snapshot", written(a_cluster(pods=pods), tmp_path), "-o", "json")
    (rack, other) = json.loads(out)["topologies"][0]["cluster"]["domains"][0]["domains"][0]["domains"]
    assert (code, err) == (0, "")
    assert rack["gpus"] == {"total": 16, "ours": 4, "others": 9, "free": 3, "blocked": 0}
    assert other["gpus"]["free"] == 16


def test_nominated_pod_counts_as_ours(run, tmp_path):
    pod = a_pod("a", "", 8, gang="demo-0") | {"status": {"nominatedNodeName": HOSTS[0]}}
    _, out, _ = run("--snapshot", written(a_cluster(pods=[pod]), tmp_path), "-o", "json")
    assert json.loads(out)["topologies"][0]["cluster"]["gpus"]["ours"] == 8


GPU_CLASS = {
    "metadata": {"name": "gpu.nvidia.com", "uid": "class"},
    "spec": {"selectors": [{"cel": {"expression": 'device.driver == "gpu.nvidia.com"'}}]},
}


def gpu_slice(node):
    """The GPUs of a node without a device plugin."""
    devices = [{"name": f"gpu-{number}"} for number in range(8)]
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.nvidia.com", "nodeName": node, "pool": pool, "devices": devices}
    return {"metadata": {"name": f"{node}-gpus", "uid": f"{node}-gpus"}, "spec": spec}


def gpu_claim(name, node, devices, *pods):
    """A claim with devices of a node that is reserved for pods."""
    pool = {"driver": "gpu.nvidia.com", "pool": node}
    results = [{**pool, "request": "gpus", "device": f"gpu-{number}"} for number in devices]
    users = [{"resource": "pods", "name": each, "uid": each} for each in pods]
    status = {"allocation": {"devices": {"results": results}}, "reservedFor": users}
    return {"metadata": {"name": name, "namespace": "team", "uid": name}, "status": status}


@pytest.mark.parametrize("extended", ["", "nvidia.com/gpu"])
def test_claimed_gpus_of_our_pods_are_ours(run, tmp_path, extended):
    """Also those that several pods share, one of which is ours."""
    node, pods = HOSTS[0], [a_pod("a", HOSTS[0], 0, gang="demo-0"), a_pod("b", HOSTS[0], 0)]
    claims = [
        gpu_claim("of-a", node, range(3), "a"),
        gpu_claim("of-b", node, [3], "b"),
        gpu_claim("shared", node, [4, 5], "b", "a"),
        gpu_claim("of-none", node, [6]),
    ]
    named = GPU_CLASS | {"spec": GPU_CLASS["spec"] | {"extendedResourceName": extended}}
    devices = {"deviceclasses": [named], "resourceslices": [gpu_slice(node)], "resourceclaims": claims}
    state = a_cluster("1x1x1x1", gpus=0, pods=pods, **devices)
    code, out, _ = run("--snapshot", written(state, tmp_path), "-o", "json")
    assert code == 0
    assert json.loads(out)["topologies"][0]["cluster"]["gpus"] == {
        "total": 8,
        "ours": 5,
        "others": 2,
        "free": 1,
        "blocked": 0,
    }


def test_ended_pods_use_nothing(run, tmp_path):
    pod = a_pod("a", HOSTS[0], 8) | {"status": {"phase": "Succeeded"}}
    _, out, _ = run("--snapshot", written(a_cluster(pods=[pod]), tmp_path), "-o", "json")
    assert json.loads(out)["topologies"][0]["cluster"]["gpus"]["free"] == 32


def test_cordon_and_taint_are_shown(run, tmp_path):
    state = a_cluster()
    cordoned = node_of(state, HOSTS[0], unschedulable=True)
    tainted = node_of(state, HOSTS[2], taints=[{"key": "maintenance", "effect": "NoSchedule"}])
    code, out, _ = run("--snapshot", written(a_cluster(nodes=[cordoned, tainted]), tmp_path))
    assert code == 0
    assert f"1 cordoned: {HOSTS[0]}" in out
    assert f"1 tainted maintenance: {HOSTS[2]}" in out
    assert "24/32 free" in out


def test_all_topologies_are_shown_unless_one_is_named(run, tmp_path):
    file = written(a_cluster(topologies=["a", "b"]), tmp_path)
    assert [line for line in run("--snapshot", file)[1].splitlines() if line.startswith("topology")] == [
        "topology a: zone > block > rack > host",
        "topology b: zone > block > rack > host",
    ]
    assert "topology a" not in run("--snapshot", file, "--topology", "b")[1]


def test_cluster_without_topology_is_shown(run, tmp_path):
    code, out, _ = run("--snapshot", written(a_cluster(topologies=[]), tmp_path))
    assert code == 0
    assert out.startswith("no ClusterTopology: all nodes are one domain\n")
    assert "32/32 free, 4 nodes" in out


def test_pods_of_one_namespace_are_said_to_be_all(run, tmp_path):
    code, _, err = run("--snapshot", written(only_namespace(a_cluster(), "team"), tmp_path))
    assert (code, err) == (0, "grove: not seen: pods: only those of namespace team are known\n")


def test_undecodable_pod_is_said_not_to_be_seen(run, tmp_path):
    pod = a_pod("a", HOSTS[0], 4) | {"spec": {"nodeName": 5}}
    code, out, err = run("--snapshot", written(a_cluster(pods=[pod]), tmp_path))
    assert (code, err) == (0, "grove: not seen: pods: cannot be decoded: team/a\n")
    assert "32/32 free" in out


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ["--topology", "defalt"],
            "--topology defalt: no ClusterTopology of this name: did you mean default? topologies: default",
        ),
        (["--watch"], "--watch and --snapshot exclude each other: a snapshot does not change"),
        (["-o", "text"], "-o text: choose table, wide, json, yaml or name"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else "",
)
def test_wrong_option_is_one_line(run, tmp_path, arguments, line):
    assert run("--snapshot", written(a_cluster(), tmp_path), *arguments) == (1, "", f"grove: {line}\n")


def test_missing_right_to_list_nodes_is_one_line(run, tmp_path):
    state = without(a_cluster(), NODES, "no right to list nodes in the whole cluster (403 Forbidden)")
    assert run("--snapshot", written(state, tmp_path)) == (
        1,
        "",
        "grove: no right to list nodes in the whole cluster (403 Forbidden): nodes are needed: ask for the "
        "right, or use --snapshot FILE\n",
    )


def test_file_that_is_no_snapshot_is_one_line(run, tmp_path):
    (tmp_path / "x").write_text("kind: Pod")
    code, out, err = run("--snapshot", str(tmp_path / "x"))
    assert (code, out) == (1, "")
    assert "not a snapshot of a cluster" in err
    assert err.count("\n") == 1
