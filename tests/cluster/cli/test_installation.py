"""`grove doctor` and `grove diagnostics` on the real control plane."""

from __future__ import annotations

import asyncio
import io
import json
import re
import tarfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

import yaml

from grove.api.naming.well_known import OPERATOR_LEASE
from grove.cli.program import DISTRIBUTION
from grove.kube.auth import config
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import CONFIG_MAPS, DEPLOYMENTS, EVENTS, PODS, SECRETS
from tests.chart import hooked, render
from tests.cluster.cli.test_inspection import GROVE, grove, tenant_kubeconfig
from tests.cluster.operator.support.objects import SETS
from tests.cluster.operator.support.workloads import clique, workload
from tests.cluster.webhooks.harness import admitting
from tests.terminal import on_terminal

SECRET = "hunter2-never-shown"
JWT = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJtZSJ9.c2lnbmF0dXJlLW9mLXRoZS10b2tlbg"


def by_name(out: str) -> dict[str, Any]:
    return {each["name"]: each for each in json.loads(out)["checks"]}


async def test_doctor_names_what_is_missing(client, cluster, crds, namespace, tmp_path):
    where = ("-n", namespace, "--kubeconfig", str(cluster.kubeconfig), "--lease", "none")
    (code, out, err), (_, text, _), (_, document, _) = await asyncio.gather(
        grove("doctor", *where, "-o", "json"), grove("doctor", *where), grove("doctor", *where, "-o", "yaml")
    )
    found = by_name(out)
    assert (code, err) == (1, "")
    assert {name: each["state"] for name, each in found.items()} == {
        "API server": "ok",
        "operator leads": "fail",
        "operator pods": "fail",
        "versions": "unknown",
        "CRDs": "ok",
        "CRDs of Dynamo": found["CRDs of Dynamo"]["state"],  # other tests install them
        "webhooks": "fail",
        "certificates": "unknown",
        "admission": "fail",
        "schedulers": "unknown",
        "feature gates": "ok",
        "NVIDIA driver": "ok",
    }
    assert all(each["remedy"] for each in found.values() if each["state"] == "fail")
    assert yaml.safe_load(document) == json.loads(out)
    assert "fail     admission: the API server accepts a set that breaks a rule\n         do: " in text
    code, narrow = await asyncio.to_thread(on_terminal, "doctor", *where, columns=40)
    assert code == 1
    assert max(len(re.sub(r"\x1b\[[0-9;]*m", "", line)) for line in narrow.splitlines()) <= 40
    assert "\x1b[1;31mfail" in narrow


@asynccontextmanager
async def installed(client: Client, namespace: str) -> AsyncIterator[None]:
    """The Deployment of the chart and its configuration; without an account, no pods are created for it."""
    kinds = {"ConfigMap": CONFIG_MAPS, "Deployment": DEPLOYMENTS}
    bodies = [each for each in render() if each["kind"] in kinds and not hooked(each)]
    for body in bodies:
        body["metadata"]["namespace"] = namespace
        await client.create(kinds[body["kind"]], body, namespace=namespace, as_type=Object)
    try:
        yield
    finally:
        await client.delete(DEPLOYMENTS, "grove-operator", namespace=namespace, as_type=Object)


async def test_doctor_tries_the_webhooks(client, cluster, crds, namespace):
    async with (
        installed(client, namespace),
        admitting(client, config.load(cluster.kubeconfig), namespace),
    ):
        where = ("-n", namespace, "--kubeconfig", str(cluster.kubeconfig))
        _, out, err = await grove("doctor", *where, "-o", "json")
    found = by_name(out)
    assert err == ""
    assert found["webhooks"]["state"] == found["certificates"]["state"] == found["admission"]["state"] == "ok"
    assert found["admission"]["message"] == "a set that breaks a rule is refused (tried in a dry run)"
    assert not (await client.list(SETS, namespace=namespace, as_type=Object)).items
    counts = f"Deployment {namespace}/grove-operator: 0 of 2 pods are ready"
    assert (found["operator pods"]["state"], found["operator pods"]["message"]) == ("fail", counts)
    assert found["versions"]["message"] == f"grove and the operator are {version(DISTRIBUTION)}"
    assert found["schedulers"]["message"].startswith("configured: default-scheduler")


async def test_missing_rights_are_no_failure(client, cluster, crds, namespace, tmp_path):
    kubeconfig = await tenant_kubeconfig(client, cluster, namespace, tmp_path)
    (code, out, err), (bundle_code, packed, bundle_err) = await asyncio.gather(
        grove("doctor", "-n", namespace, "--kubeconfig", kubeconfig),
        bundle("-n", namespace, "--kubeconfig", kubeconfig),
    )
    assert (code, err) == (0, "")
    assert "unknown  CRDs: cannot be known: no right to get customresourcedefinitions." in out
    assert "unknown  admission: cannot be known: no right to create podcliquesets.grove.io" in out
    assert (bundle_code, bundle_err) == (0, b"")
    listed = json.loads(unpacked(packed)["contents.json"])
    missing = {each["what"] for each in listed["missing"]}
    assert {"snapshot.json", "operator logs"} <= missing
    assert {each["name"] for each in listed["files"]} == {
        "versions.json",
        "doctor.txt",
        "doctor.json",
        "events.json",
        "snapshot.json",
    }


async def bundle(*arguments: str) -> tuple[int | None, bytes, bytes]:
    """The exit code, the archive and the errors of `grove diagnostics -f -`."""
    process = await asyncio.create_subprocess_exec(
        GROVE,
        *("diagnostics", "-f", "-", *arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    return process.returncode, out, err


def unpacked(packed: bytes) -> dict[str, str]:
    """The files of an archive, by name without the folder."""
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        return {
            each.name.partition("/")[2]: file.read().decode()
            for each in tar
            if (file := tar.extractfile(each)) is not None
        }


def secretive(name: str) -> dict[str, Any]:
    """A set with secrets wherever users put them."""
    container = {
        "name": "main",
        "image": "registry.example.com/model:1",
        "env": [{"name": "HF_TOKEN", "value": SECRET}],
        "command": ["sh", "-c", f"export API_KEY={SECRET}; exec serve --api-key '{SECRET}'"],
        "args": ["--password", SECRET, f"--hf-token={SECRET}", f"https://me:{SECRET}@example.com", JWT],
        "readinessProbe": {
            "httpGet": {"port": 80, "httpHeaders": [{"name": "Authorization", "value": SECRET}]}
        },
    }
    pod = {"containers": [container], "imagePullSecrets": [{"name": "registry"}]}
    body = workload(name, clique("a", 1, pod=pod, annotations={"vault.example.com/token": SECRET}))
    applied = "kubectl.kubernetes.io/last-applied-configuration"
    body["metadata"]["annotations"] = {applied: json.dumps(body)}
    return body


async def store_secrets(client: Client, namespace: str) -> None:
    """Objects that contain secrets, as users create them."""
    await client.create(SETS, secretive("chat"), namespace=namespace, as_type=Object)
    spec = secretive("chat")["spec"]["template"]["cliques"][0]["spec"]["podSpec"]
    labels = {"app.kubernetes.io/name": "grove-operator"}
    metadata = {"name": "lone", "labels": labels, "annotations": {"vault.example.com/token": SECRET}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    await client.create(PODS, pod, namespace=namespace, as_type=Object)
    body = {"metadata": {"name": "registry"}, "stringData": {"token": SECRET}}
    await client.create(SECRETS, body, namespace=namespace, as_type=Object)
    body = {"metadata": {"name": "settings"}, "data": {"token": SECRET}}
    await client.create(CONFIG_MAPS, body, namespace=namespace, as_type=Object)
    event = {
        "metadata": {"name": "pull", "annotations": {"other": SECRET}},
        "eventTime": "2026-11-17T00:00:00.000000Z",
        "reportingController": "test",
        "reportingInstance": "test",
        "action": "Pull",
        "reason": "Failed",
        "type": "Warning",
        "note": f"pull of https://me:{SECRET}@registry failed with {JWT}",
        "regarding": {"kind": "Pod", "name": "lone", "namespace": namespace},
    }
    await client.create(EVENTS, event, namespace=namespace, as_type=Object)


async def test_diagnostics_contain_no_secret(client, cluster, crds, namespace, tmp_path):
    await store_secrets(client, namespace)
    file = tmp_path / "bundle.tar.gz"
    where = ("-n", namespace, "--kubeconfig", str(cluster.kubeconfig))
    code, out, err = await grove("diagnostics", *where, "-f", str(file))
    assert code == 0, err
    assert re.match(rf"{re.escape(str(file))}: \d+ files, ", out)
    assert f"grove: not in it: logs/{namespace}/lone.log: " in err  # its node is simulated
    assert file.stat().st_mode & 0o777 == 0o600
    files = unpacked(file.read_bytes())
    assert SECRET not in "".join(files.values())
    assert JWT not in "".join(files.values())
    assert '"name":"chat"' in files["snapshot.json"]
    assert '"name":"lone"' in files["snapshot.json"]
    assert "(removed)" in files["events.json"]
    assert f"no Lease {OPERATOR_LEASE}" in files["doctor.txt"] or "leads" in files["doctor.txt"]
    code, out, err = await grove("diagnostics", *where, "-f", str(file))
    assert (code, out, err) == (1, "", f"grove: {file} exists already: name another file with -f\n")
