"""`grove plan` on described clusters and snapshot files: output, exit codes, and input that is refused."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from msgspec.structs import replace

from grove.cli.main import main
from grove.cluster_state.kinds import TOPOLOGIES
from grove.cluster_state.model import KindState
from grove.cluster_state.snapshot_file import encode
from grove.kube.client.resource import PODS
from tests.cluster_state.states import SETS, shaped, unreadable, with_objects
from tests.dry_run.plans import applied, with_gpus
from tests.plan.builders import a_set
from tests.terminal import GROVE, on_terminal

SHAPE = ("--shape", "1x1x2x2", "--gpus", "8")
PACKED = {"topologyName": "t", "pack": {"required": "rack"}}
FITS = """\
PodCliqueSet ns/wl  fits, create
├─ admission  allowed by the rules of this grove
├─ creates  1 PodCliqueScalingGroup, 1 Service, 3 PodCliques, 2 PodGangs, 4 Pods
├─ gang wl-0  3 pods on 2 nodes, rack z0/z0-b0/z0-b0-r0
│  ├─ wl-0-a  2 pods on 1 node, hostname z0/z0-b0/z0-b0-r0/z0-b0-r0-h0
│  └─ wl-0-x-0-b  1 pod on 1 node, hostname z0/z0-b0/z0-b0-r0/z0-b0-r0-h1
└─ gang wl-0-x-0  1 pod on 1 node, rack z0/z0-b0/z0-b0-r0
   └─ wl-0-x-1-b  1 pod on 1 node, hostname z0/z0-b0/z0-b0-r0/z0-b0-r0-h1
"""
DOES_NOT_FIT = """\
PodCliqueSet ns/wl  does not fit, create
├─ admission  allowed by the rules of this grove
├─ replicas  at most 0 fit now
├─ creates  1 Service, 1 PodClique, 1 PodGang, 3 Pods
└─ gang wl-0  3 pods do not fit, even if the cluster were empty
   ├─ rack z0/z0-b0/z0-b0-r0  {shortage}
   └─ rack z0/z0-b0/z0-b0-r1  {shortage}
""".format(shortage="wl-0: needs 3 pods, 2 would fit if it were empty, needs 24 nvidia.com/gpu, 16 free")
ALIKE = """\
PodCliqueSet ns/wl  does not fit, create
├─ admission  allowed by the rules of this grove
├─ creates  3 Services, 3 PodCliques, 3 PodGangs, 9 Pods
├─ gang wl-0  3 pods do not fit, even if the cluster were empty
│  ├─ rack z0/z0-b0/z0-b0-r0  {shortage}
│  └─ rack z0/z0-b0/z0-b0-r1  {shortage}
└─ 2 more gangs  lack the same: wl-1, wl-2
""".format(shortage="wl-0: needs 3 pods, 2 would fit if it were empty, needs 24 nvidia.com/gpu, 16 free")
UPDATE = """\
PodCliqueSet ns/wl  fits, update
├─ admission  allowed by the rules of this grove
├─ creates  2 Pods
├─ changes  2 PodCliques, 2 PodGangs
├─ deletes  2 Pods
├─ update  2 units replaced, at least 1 of 2 replicas available
"""


def run(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    """Exit code, output and errors of `grove plan`."""
    with pytest.raises(SystemExit) as ended:
        main(["plan", *map(str, arguments)])
    out, err = capsys.readouterr()
    return int(ended.value.code or 0), out, err


def written(folder: Path, *bodies: object) -> Path:
    file = folder / "set.yaml"
    file.write_text(yaml.safe_dump_all(bodies))
    return file


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A set that fits into a rack of two hosts."""
    return written(tmp_path, with_gpus(a_set("a:2 b:1", "x:2/1=b", topologyConstraint=PACKED), 4))


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """A gang that no rack of two hosts holds."""
    return written(tmp_path, with_gpus(a_set("a:3", topologyConstraint=PACKED), 8))


def test_set_that_fits(capsys, file) -> None:
    assert run(capsys, "-f", file, *SHAPE) == (0, FITS, "")


def test_set_that_does_not_fit(capsys, large) -> None:
    assert run(capsys, "-f", large, "--max", *SHAPE) == (2, DOES_NOT_FIT, "")


def test_gangs_that_lack_the_same_share_a_line(capsys, tmp_path) -> None:
    alike = written(tmp_path, with_gpus(a_set("a:3", replicas=3, topologyConstraint=PACKED), 8))
    assert run(capsys, "-f", alike, *SHAPE) == (2, ALIKE, "")


def test_set_from_standard_input(capsys, file, monkeypatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(file.read_bytes())))
    assert run(capsys, "-f", "-", *SHAPE) == (0, FITS, "")


def test_json_and_yaml_say_the_same(capsys, large) -> None:
    code, out, _ = run(capsys, "-f", large, "-o", "json", *SHAPE)
    found = json.loads(out)
    assert (code, found["verdict"], found["plans"][0]["gangs"][0]["refused"]) == (2, "DoesNotFit", True)
    missing = found["plans"][0]["gangs"][0]["missing"][0]
    assert (missing["reason"], missing["have"], missing["need"]) == ("TooLarge", 2, 3)
    assert yaml.safe_load(run(capsys, "-f", large, "-o", "yaml", *SHAPE)[1]) == found


def test_topology_and_set_in_one_file(capsys, tmp_path) -> None:
    levels = [{"domain": "rack", "key": "topology.kubernetes.io/rack"}]
    topology = {"apiVersion": "grove.io/v1alpha1", "kind": "ClusterTopology", "metadata": {"name": "t"}}
    body = with_gpus(a_set("a:2", topologyConstraint=PACKED), 8)
    file = written(tmp_path, body, {**topology, "spec": {"levels": levels}})
    code, out, err = run(capsys, "-f", file, *SHAPE)
    assert (code, err) == (0, "")
    assert "ClusterTopology t  create\n" in out
    assert "gang wl-0  2 pods on 2 nodes, rack z0-b0-r0\n" in out


def test_named_set_of_a_snapshot_is_scaled(capsys, tmp_path) -> None:
    snapshot = tmp_path / "cluster.json"
    snapshot.write_bytes(encode(applied(shaped("1x1x2x2"), with_gpus(a_set("a:2"), 8))))
    at = ("--snapshot", snapshot, "-n", "ns")
    assert run(capsys, "wl", "--replicas", "2", *at)[0] == 0
    code, out, _ = run(capsys, "wl", "--replicas", "3", "--max", *at)
    assert code == 2
    assert "replicas  at most 2 fit now" in out
    assert run(capsys, "wl", *at)[1].startswith("PodCliqueSet ns/wl  fits, unchanged\n")


def test_update_of_a_set_in_a_snapshot(capsys, tmp_path) -> None:
    body = with_gpus(a_set("a:1", replicas=2), 8)
    container = body["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["containers"][0]
    container["env"] = [{"name": "TOKEN", "value": "secret"}]
    snapshot = tmp_path / "cluster.json"
    snapshot.write_bytes(encode(applied(shaped("1x1x2x2"), body)))
    file = written(tmp_path, body)
    assert run(capsys, "-f", file, "--snapshot", snapshot)[1].startswith(
        "PodCliqueSet ns/wl  fits, unchanged\n"
    )
    container["image"] = "example.com/serve:2"
    code, out, _ = run(capsys, "-f", written(tmp_path, body), "--snapshot", snapshot)
    assert code == 0
    assert UPDATE in out


def test_missing_rights_cannot_be_known(capsys, tmp_path, file) -> None:
    snapshot = tmp_path / "cluster.json"
    state = unreadable(shaped("1x1x2x2", 8, "t"), PODS, "no right to list pods (403 Forbidden)")
    snapshot.write_bytes(encode(state))
    code, out, _ = run(capsys, "-f", file, "--snapshot", snapshot)
    assert code == 3
    assert out.startswith("PodCliqueSet ns/wl  cannot be known, create\n")
    assert out.endswith("not read  pods: no right to list pods (403 Forbidden)\n")


def test_rejected_set_is_bad_input(capsys, tmp_path) -> None:
    body = a_set("a:2")
    body["spec"]["template"]["cliques"][0]["spec"]["minAvailable"] = 3
    code, out, _ = run(capsys, "-f", written(tmp_path, body), *SHAPE)
    assert code == 1
    assert "admission  rejected by the rules of this grove: spec.template.cliques[0]" in out


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ((), "nothing to plan: give the name of a PodCliqueSet, or -f FILE"),
        (("wl", "-f", "{file}"), "wl and -f {file} exclude each other: give a name or a file"),
        (("-f", "{file}", *SHAPE, "--snapshot", "x"), "--snapshot and --shape exclude each other"),
        (("wl", *SHAPE), "wl: nothing exists on a described shape: give a file with -f"),
        (("-f", "{file}", "--gpus", "8"), "--gpus is for the nodes of a shape: add --shape"),
        (("-f", "{file}", "--shape", "2x2", "--gpus", "-1"), "--gpus -1: must not be negative"),
        (("-f", "{file}", *SHAPE, "--replicas", "2"), "--replicas is for a PodCliqueSet of the cluster"),
        (("wl", "--replicas", "-1"), "--replicas -1: must not be negative"),
        (("-f", "{file}", "--shape", "wide"), "--shape 'wide': write zones x blocks x racks x hosts"),
        (("-f", "{file}", "--shape", "9" * 5000), "--shape of 5000 characters: at most"),
        (("-f", "{folder}/none.yaml", *SHAPE), "{folder}/none.yaml: cannot be read (No such file"),
        (("-f", "{folder}", *SHAPE), "{folder}: cannot be read (Is a directory)"),
        (("-f", "{file}", "--snapshot", "{file}"), "{file}: not a snapshot of a cluster: it is not JSON"),
        (("-f", "{file}", *SHAPE, "--config", "{folder}/none"), "{folder}/none: cannot be read"),
        (("-f", "{file}", *SHAPE, "-o", "html"), "-o html: choose table, wide, json, yaml or name"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_one_line(capsys, file, arguments, line) -> None:
    named = {"file": file, "folder": file.parent}
    code, out, err = run(capsys, *(each.format(**named) for each in arguments))
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.startswith(f"grove: {line.format(**named)}")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (b"", "no objects: write at least one of PodCliqueSets"),
        (b"---\n---\n", "no objects: write at least one of PodCliqueSets"),
        (b"a: [", "not YAML at line 2"),
        (b"\xff\xfe", "not text: write objects as YAML or JSON"),
        (b"just words", "document 1: not a Kubernetes object: write apiVersion, kind, metadata and spec"),
        (b"kind: Deployment\napiVersion: apps/v1", "document 1: Deployment of apps/v1: grove plan reads"),
        (b"kind: PodCliqueSet", "document 1: PodCliqueSet of no apiVersion: grove plan reads"),
        (b"{kind: PodCliqueSet, apiVersion: grove.io/v1alpha1}",
         "document 1: PodCliqueSet without metadata.name"),
        (b"[" * 100_000, "not YAML at line 1 (it nests deeper than 200 levels)"),
        (b"a: !!timestamp x", "not YAML at line 1 (could not determine a constructor"),
        (b"{kind: PodCliqueSet, apiVersion: grove.io/v1alpha1, metadata: {name: x, namespace: bad/../ns}}",
         "document 1: PodCliqueSet x: metadata.namespace 'bad/../ns': a lowercase"),
        (b"{kind: PodCliqueSet, apiVersion: grove.io/v1alpha1, metadata: {name: x, namespace: [5]}}",
         "document 1: PodCliqueSet x: metadata.namespace [5]: must be text"),
        (b"{kind: PodCliqueSet, apiVersion: grove.io/v1alpha1, metadata: {name: x, labels: {a: null}}}",
         "document 1: PodCliqueSet x: metadata.labels must be a map of text to text"),
        (b"{kind: PodCliqueSet, apiVersion: grove.io/v1alpha1, metadata: {name: x, annotations: 5}}",
         "document 1: PodCliqueSet x: metadata.annotations must be a map of text to text"),
        (b"{kind: PodCliqueSet, apiVersion: grove.io/v1alpha1, metadata: {name: x}}\n---\n"
         b"{kind: PodCliqueSet, apiVersion: grove.io/v1alpha1, metadata: {name: x, namespace: default}}",
         "PodCliqueSet default/x is there 2 times: keep one of them"),
        (b"{kind: PodCliqueSet, apiVersion: grove.io/v1, metadata: {name: x}}",
         "document 1: PodCliqueSet x: apiVersion 'grove.io/v1' is not served: write grove.io/v1alpha1\n"),
        (b"{kind: DynamoGraphDeployment, apiVersion: nvidia.com/v1, metadata: {name: x}}",
         "document 1: DynamoGraphDeployment x: apiVersion 'nvidia.com/v1' is not served: "
         "write nvidia.com/v1beta1 or nvidia.com/v1alpha1\n"),
        (b"kind: List\nitems: [{kind: Pod}]", "document 1: Pod of no apiVersion: grove plan reads"),
    ],
)  # fmt: skip
def test_wrong_files_are_one_line(capsys, tmp_path, text, line) -> None:
    file = tmp_path / "set.yaml"
    file.write_bytes(text)
    code, out, err = run(capsys, "-f", file, *SHAPE)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.startswith(f"grove: {file}: {line}")


@pytest.mark.parametrize(
    "changes",
    [
        {"metadata": {"finalizers": 5}},
        {"metadata": {"finalizers": [[1]]}},
        {"metadata": {"finalizers": [None]}},
        {"metadata": {"ownerReferences": 5}},
        {"metadata": {"annotations": None, "generation": "x", "uid": 5}},
        {"status": ""},
        {"status": {"replicas": "x"}},
    ],
    ids=str,
)
def test_what_the_server_sets_is_not_read(capsys, tmp_path, changes) -> None:
    body = a_set("a:1")
    body |= {**changes, "metadata": {**body["metadata"], **changes.get("metadata", {})}}
    code, out, err = run(capsys, "-f", written(tmp_path, body), *SHAPE)
    assert (code, err) == (0, "")
    assert out.startswith("PodCliqueSet ns/wl  fits, create")


def test_closed_standard_input_is_one_line(capsys, monkeypatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    line = "grove: -f -: standard input is closed: write the objects to it, or give a file\n"
    assert run(capsys, "-f", "-", *SHAPE) == (1, "", line)


def test_unknown_name_has_a_suggestion(capsys, tmp_path) -> None:
    snapshot = tmp_path / "cluster.json"
    snapshot.write_bytes(encode(applied(shaped(), a_set("a:1", name="chat"))))
    at = ("--snapshot", snapshot, "-n", "ns")
    assert run(capsys, "chta", *at) == (
        1,
        "",
        "grove: no PodCliqueSet chta in namespace ns: did you mean chat?\n",
    )
    assert "grove get -A lists all sets" in run(capsys, "other", *at)[2]
    assert run(capsys, "chat", *at[:2]) == (
        1,
        "",
        "grove: no PodCliqueSet chat in namespace default: there is one in namespace ns: add -n ns\n",
    )


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        (KindState(SETS, problem="no right to list podcliquesets"), "no right to list podcliquesets"),
        (
            KindState(SETS, served=False),
            "the cluster does not serve them: install the CRDs with grove crds --apply",
        ),
        (KindState(SETS, namespace="other"), "only those of namespace other are known"),
    ],
)
def test_named_set_that_is_not_read_is_unknown(capsys, tmp_path, kind, why) -> None:
    snapshot = tmp_path / "cluster.json"
    state = shaped()
    snapshot.write_bytes(encode(replace(state, kinds={**state.kinds, SETS: kind})))
    line = f"grove: PodCliqueSet wl in namespace ns cannot be read: {why}\n"
    assert run(capsys, "wl", "--snapshot", snapshot, "-n", "ns") == (3, "", line)


@pytest.mark.parametrize("spec", [{"replicas": "many"}, 5, None])
def test_named_set_that_is_undecodable_is_unknown(capsys, tmp_path, spec) -> None:
    snapshot = tmp_path / "cluster.json"
    snapshot.write_bytes(encode(with_objects(shaped(), SETS, a_set("a:1") | {"spec": spec})))
    line = (
        "grove: PodCliqueSet wl in namespace ns cannot be decoded: correct its spec, or give a file with -f\n"
    )
    assert run(capsys, "wl", "--replicas", "2", "--snapshot", snapshot, "-n", "ns") == (3, "", line)


def test_unread_topologies_cannot_be_known(capsys, tmp_path) -> None:
    snapshot = tmp_path / "cluster.json"
    snapshot.write_bytes(encode(unreadable(shaped(), TOPOLOGIES, "no right (403 Forbidden)")))
    file = written(tmp_path, a_set("a:1", topologyConstraint=PACKED))
    code, out, _ = run(capsys, "-f", file, "--snapshot", snapshot)
    assert code == 3
    assert out.startswith("PodCliqueSet ns/wl  cannot be known, create\n")
    assert "admission  cannot be known by the rules of this grove: no right (403 Forbidden)\n" in out


def test_set_of_wrong_types_is_rejected(capsys, tmp_path) -> None:
    body = a_set("a:1")
    body["spec"]["replicas"] = "many"
    code, out, err = run(capsys, "-f", written(tmp_path, body), *SHAPE)
    assert (code, err) == (1, "")
    assert "rejected by the rules of this grove: spec.replicas" in out


def test_forty_columns_are_enough(large) -> None:
    code, out = on_terminal("plan", "-f", str(large), *SHAPE, columns=40, NO_COLOR="1")
    assert code == 2
    lines = out.replace("\r", "").splitlines()
    assert "does not fit" in lines[0]
    assert max(map(len, lines)) <= 40


def test_closed_pipe_is_silent(file) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        command = [GROVE, "plan", "-f", str(file), *SHAPE]
        ended = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    finally:
        os.close(writing)
    assert (ended.returncode, ended.stderr) == (141, "")
