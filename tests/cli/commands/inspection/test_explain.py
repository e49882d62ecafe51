"""`grove explain` on snapshot files: sets that no operator has reconciled yet."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from grove.api.types.podcliqueset import PodCliqueSet
from grove.cluster_state.model import KindState
from grove.kube.client.resource import LEASES, NODES
from grove.operator.caches.resources import resource_of
from tests.cli.commands.inspection.snapshots import (
    Body,
    a_cluster,
    a_pod,
    node_of,
    only_namespace,
    without,
    written,
)

HOSTS = [f"z0-b0-r{rack}-h{host}" for rack in (0, 1) for host in (0, 1)]
SETS = resource_of(PodCliqueSet.KIND)


def a_set(name: str = "demo", *, pods: int = 2, gpus: int = 8, **spec: Any) -> Body:
    """A set of one gang that needs a rack."""
    limits = {"limits": {"nvidia.com/gpu": str(gpus)}}
    pod = {"containers": [{"name": "main", "image": "main", "resources": limits}], **spec}
    clique = {"name": "worker", "spec": {"roleName": "worker", "replicas": pods, "podSpec": pod}}
    constraint = {"topologyName": "default", "pack": {"required": "rack"}}
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {"name": name, "namespace": "default", "uid": name, "generation": 1},
        "spec": {"replicas": 1, "template": {"topologyConstraint": constraint, "cliques": [clique]}},
    }


def a_lease(renewed: str = "2100-01-01T00:00:00.000000Z") -> Body:
    spec = {"holderIdentity": "me", "leaseDurationSeconds": 15, "renewTime": renewed}
    return {"metadata": {"name": "lease", "namespace": "grove-system", "uid": "lease"}, "spec": spec}


@pytest.fixture
def run(run_command):
    """Runs `grove explain`; returns exit code, output and errors."""
    return partial(run_command, "explain")


def explained(run: Any, folder: Any, *arguments: str, **objects: Any) -> Any:
    """The explanation of set demo as JSON."""
    objects = {"leases": [a_lease()], "podcliquesets": [a_set()], **objects}
    file = written(a_cluster(**objects), folder)
    code, out, err = run("demo", "--snapshot", file, "-o", "json", *arguments)
    assert (code, err) == (0, "")
    return json.loads(out)


def codes(found: Any) -> list[str]:
    return [each["code"] for each in found["reasons"]]


def test_undecodable_objects_are_said_not_to_be_seen(run, tmp_path):
    """Whether an operator leads is not known from a Lease that cannot be decoded."""
    lease = a_lease() | {"spec": {"leaseDurationSeconds": "x"}}
    graph = {"metadata": {"name": "g", "namespace": "team", "uid": "g"}, "spec": 5}
    objects = {"leases": [lease], "dynamographdeployments": [graph], "podcliquesets": [a_set()]}
    code, out, err = run("demo", "--snapshot", written(a_cluster(**objects), tmp_path))
    assert (code, "NoOperatorLeading" in out) == (0, False)
    assert err.splitlines() == [
        "grove: not seen: dynamographdeployments.nvidia.com: cannot be decoded: team/g",
        "grove: not seen: leases.coordination.k8s.io: cannot be decoded: grove-system/lease",
    ]


FULL = [a_pod(f"train-{i}", host, 4) for i, host in enumerate(HOSTS)]


def test_full_racks_are_the_reason(run, tmp_path):
    found = explained(run, tmp_path, pods=FULL)
    assert codes(found) == ["InsufficientResources"]
    (gang,) = found["gangs"]
    assert (gang["gang"], gang["pods"], gang["level"]) == ("demo-0", 2, "rack")
    assert gang["domains"][0] == {
        "domain": "rack z0/z0-b0/z0-b0-r0",
        "nodes": 2,
        "eligible": 2,
        "resource": "nvidia.com/gpu",
        "free": 8,
        "total": 16,
        "need": 16,
        "pods": 2,
    }
    assert [each["pod"]["name"] for each in gang["holders"]] == ["train-0", "train-1"]
    assert [each["action"] for each in gang["remedies"]] == ["endPods", "addNodes"]


def test_cordoned_nodes_are_the_reason(run, tmp_path):
    state = a_cluster()
    found = explained(run, tmp_path, nodes=[node_of(state, host, unschedulable=True) for host in HOSTS])
    assert codes(found) == ["NodeCordoned"]
    assert found["gangs"][0]["remedies"][0]["action"] == "uncordon"


def test_operator_that_does_not_lead_is_first(run, tmp_path):
    found = explained(run, tmp_path, pods=FULL, leases=[a_lease("2026-01-01T00:00:00.000000Z")])
    assert codes(found) == ["NoOperatorLeading", "InsufficientResources"]
    assert found["reasons"][0]["since"] == "2026-01-01T00:00:00Z"


def test_set_without_lease_was_not_reconciled(run, tmp_path):
    assert codes(explained(run, tmp_path, leases=[])) == ["NoOperatorLeading"]


def test_lease_in_a_namespace_that_was_not_read_may_exist(run, tmp_path):
    state = a_cluster(podcliquesets=[a_set()], pods=FULL)
    leases = KindState(LEASES, namespace="default")
    file = written(replace(state, kinds={**state.kinds, LEASES: leases}), tmp_path)
    _, out, _ = run("demo", "--snapshot", file, "-o", "json")
    assert codes(json.loads(out)) == ["InsufficientResources"]


def test_everything_that_waits_is_a_table(run, tmp_path):
    sets = [a_set("small", pods=1), a_set("large", pods=3)]
    file = written(a_cluster(podcliquesets=sets, leases=[a_lease()]), tmp_path)
    code, out, _ = run("-A", "--snapshot", file)
    assert code == 0
    assert [line.split()[:3] for line in out.splitlines()] == [
        ["NAMESPACE", "NAME", "REASON"],
        ["default", "large", "GangTooLarge"],
        ["default", "small", "-"],
    ]


def test_nothing_that_waits_is_said(run, tmp_path):
    assert run("--snapshot", written(a_cluster(), tmp_path)) == (0, "nothing waits\n", "")


def test_exit_code_says_whether_something_waits(run, tmp_path):
    waiting = written(a_cluster(podcliquesets=[a_set(pods=3)]), tmp_path)
    assert run("demo", "--exit-code", "--snapshot", waiting)[0] == 2
    assert run("demo", "--snapshot", waiting)[0] == 0
    assert run("--exit-code", "--snapshot", written(a_cluster(), tmp_path))[0] == 0


def test_rights_on_one_namespace_are_enough(run, tmp_path):
    denied = "no right to list nodes in the whole cluster (403 Forbidden)"
    state = without(a_cluster(podcliquesets=[a_set()], leases=[a_lease()]), NODES, denied)
    state = without(only_namespace(state, "default"), LEASES, "no right to list leases")
    code, out, err = run("demo", "--snapshot", written(state, tmp_path))
    assert code == 0
    assert out.splitlines()[0] == "PodCliqueSet default/demo: 0/1 replicas available, no pods yet"
    assert err.splitlines() == [
        "grove: not seen: leases.coordination.k8s.io: no right to list leases",
        f"grove: not seen: nodes: {denied}",
        "grove: not seen: pods: only those of namespace default are known",
    ]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["dem"], "no workload dem in namespace default: did you mean demo?"),
        (
            ["demo", "-n", "other"],
            "no workload demo in namespace other: there is one in namespace default: add -n default",
        ),
        (["demo", "-A"], "demo: a name needs a namespace: replace --all-namespaces with --namespace"),
        (["-A", "-n", "x"], "--namespace x and --all-namespaces exclude each other: use one of them"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else "",
)
def test_wrong_name_is_one_line(run, tmp_path, arguments, line):
    file = written(a_cluster(podcliquesets=[a_set()]), tmp_path)
    assert run(*arguments, "--snapshot", file) == (1, "", f"grove: {line}\n")


def test_missing_crds_are_one_line(run, tmp_path):
    state = a_cluster()
    kinds = {resource: found for resource, found in state.kinds.items() if resource != SETS}
    code, out, err = run("demo", "--snapshot", written(replace(state, kinds=kinds), tmp_path))
    assert (code, out) == (1, "")
    assert "does not serve PodCliqueSets: install the CRDs with grove crds" in err
    assert err.count("\n") == 1


def test_missing_right_to_list_sets_is_one_line(run, tmp_path):
    state = without(a_cluster(), SETS, "no right to list podcliquesets.grove.io in namespace default")
    assert run("demo", "--snapshot", written(state, tmp_path)) == (
        1,
        "",
        "grove: no right to list podcliquesets.grove.io in namespace default: ask for the right, or choose a "
        "namespace with -n\n",
    )


def test_set_that_cannot_be_planned_is_named(run, tmp_path):
    wrong = a_set("wrong")
    wrong["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["overhead"] = {"cpu": "1e1.5"}
    file = written(a_cluster(leases=[a_lease()], podcliquesets=[a_set(), wrong], pods=FULL), tmp_path)
    for arguments in (("demo",), ("wrong",), ("-A",)):
        code, out, err = run(*arguments, "--snapshot", file)
        assert (code, err.count("\n")) == (0, 1)
        assert err.startswith("grove: not seen: PodCliqueSet default/wrong: it cannot be planned ('1e1.5' is")
        assert ("InsufficientResources" in out) == (arguments != ("wrong",))
