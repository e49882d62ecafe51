"""`grove status` and `grove events` on the real cluster, with an operator that places gangs, and without."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import yaml

from grove.dynamo.api import crd_definitions
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import EVENTS, Resource
from grove.operator.caches.dynamo import GRAPHS
from tests.cluster.cli.commands import grove, live, steady, tenant_kubeconfig
from tests.cluster.conftest import apply, established
from tests.cluster.operator.scheduling.test_placement import PACKED, PLACING, gpus, topology
from tests.cluster.operator.support.harness import operating, watching
from tests.cluster.operator.support.objects import GANGS, SETS
from tests.cluster.operator.support.workloads import clique, workload
from tests.dynamo.builders import component, deployment
from tests.terminal import on_terminal

CORE_EVENTS = Resource("", "v1", "events", "Event")
NO_LEASE = ("--lease", "no-such-lease")
HEALTHY = """\
PodCliqueSet NAMESPACE/demo: Healthy
1/1 replicas available, 1/1 gangs running, 2/2 pods ready
constraints: each replica in one rack, topology local, enforced: EnforcedByPlacement
roles
  ROLE    READY  UPDATED
  worker  2/2    2/2
gangs
  GANG    PHASE    READY  DOMAIN         SCORE  CONSTRAINTS
  demo-0  Running  2/2    rack z0-b0-r0  1.00   enforced
"""


def packed(name: str, pods: int) -> dict[str, Any]:
    """A set of one gang that needs a rack; a rack has four nodes."""
    body = workload(name, gpus("worker", pods, 8))
    body["spec"]["template"]["topologyConstraint"] = PACKED
    return body


def waits(gang: Any) -> bool:
    conditions = gang.status.get("conditions", ()) if gang is not None else ()
    return any(each["type"] == "Waiting" and each["status"] == "True" for each in conditions)


async def test_page_of_a_healthy_and_of_a_waiting_set(client, cluster, crds, placing_account, namespace):
    where = ("-n", namespace, "--kubeconfig", str(cluster.kubeconfig), *NO_LEASE)
    at = where[:4]
    async with (
        watching(client, placing_account.config, namespace) as world,
        topology(client),
        operating(world, topology_aware=True, backends=PLACING),
    ):
        await world.create(SETS, packed("demo", 2))
        await world.create(SETS, packed("large", 5))
        async with (
            live("status", "demo", "-w", *where) as shown,
            live("events", "demo", "-w", *at) as heard,
        ):
            await shown.until("demo: Healthy")
            await heard.until("Scheduled  Pod/demo-0-worker-")
            assert await shown.interrupt() == (130, "grove: interrupted\n")
            assert await heard.interrupt() == (130, "grove: interrupted\n")
        await world.until(lambda: waits(world.find(GANGS, "large-0")), "the reason")
        text, as_json, as_yaml, gang, pod, large, narrow = await asyncio.gather(
            grove("status", "demo", *where),
            grove("status", "demo", "-o", "json", *where),
            grove("status", "pcs/demo", "-o", "yaml", *where),
            grove("status", "gang/demo-0", *where),
            grove("status", f"pod/{world.pods(part_of='demo')[0].name}", *where),
            grove("status", "large", *where),
            asyncio.to_thread(on_terminal, "status", "large", *where, columns=40),
        )
        listed, as_items, as_documents, warned, close = await asyncio.gather(
            grove("events", "demo", *at),
            grove("events", "demo", "-o", "json", *at),
            grove("events", "demo", "-o", "yaml", *at),
            grove("events", "large", "--warnings", *at),
            asyncio.to_thread(on_terminal, "events", "demo", *at, columns=40),
        )
    assert (text.code, text.err) == (0, "")
    assert without_operator(steady(text.out, namespace)) == HEALTHY
    view = json.loads(as_json.out)
    assert (view["verdict"], view["replicas"]) == ("Healthy", {"desired": 1, "available": 1, "updated": 1})
    assert view["gangs"][0]["score"] == 1.0
    assert yaml.safe_load(as_yaml.out) == view
    assert gang.out.startswith(f"PodGang {namespace}/demo-0: Healthy\n2/2 pods ready\n")
    assert without_operator(steady(pod.out, namespace)) == "Pod NAMESPACE/demo-0-worker-POD: Healthy\nready\n"
    assert pod.code == 0
    assert large.code == 2
    assert large.out.startswith(f"PodCliqueSet {namespace}/large: Waiting\n")
    assert "1. GangTooLarge, PodGang large-0, since " in large.out
    assert "   -> " in large.out
    assert narrow[0] == 2
    assert max(map(len, plain(narrow[1]).splitlines())) <= 40
    assert listed.code == 0
    assert listed.out.startswith("LAST  TYPE ")
    items = json.loads(as_items.out)["items"]
    assert {(each["about"]["kind"], each["reason"]) for each in items} >= {("Pod", "Scheduled")}
    assert [each["time"] for each in items] == sorted(each["time"] for each in items)
    assert yaml.safe_load(as_documents.out)["items"][0]["reason"] == items[0]["reason"]
    assert max(map(len, plain(close[1]).splitlines())) <= 40
    assert "Warning  GangTooLarge  PodGang/large-0" in warned.out


def without_operator(text: str) -> str:
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("operator: "))


def plain(text: str) -> str:
    """Text without colours."""
    return re.sub("\x1b\\[[0-9;]*m", "", text)


async def create_events(client: Client, namespace: str) -> None:
    """An event of events.k8s.io that has happened seven times, and one of the older API, four times."""
    about = {
        "kind": "PodCliqueSet",
        "name": "demo",
        "namespace": namespace,
        "apiVersion": "grove.io/v1alpha1",
    }
    new = {
        "metadata": {"name": "new"},
        "type": "Warning",
        "reason": "Tried",
        "action": "Try",
        "note": "\x1b[2Jcleared",
        "eventTime": "2026-01-02T00:00:00.000000Z",
        "series": {"count": 7, "lastObservedTime": "2026-01-02T00:00:01.500000Z"},
        "regarding": about,
        "reportingController": "grove.io/test",
        "reportingInstance": "test",
    }
    old = {
        "metadata": {"name": "old"},
        "type": "Normal",
        "reason": "Tried",
        "message": "in two\nlines",
        "count": 4,
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-02T00:00:01Z",
        "involvedObject": about,
    }
    await client.create(EVENTS, new, namespace=namespace, as_type=Object)
    await client.create(CORE_EVENTS, old, namespace=namespace, as_type=Object)


async def test_without_an_operator_the_rest_is_shown(client, cluster, crds, namespace, tmp_path):
    for definition in crd_definitions.all_definitions():
        await apply(client, definition)
        await established(client, definition["metadata"]["name"])
    graph = deployment(component())
    graph["metadata"] = {"name": "graph"}
    await client.create(GRAPHS, graph, namespace=namespace, as_type=Object)
    await client.create(SETS, workload("demo", clique("a", 2)), namespace=namespace, as_type=Object)
    await create_events(client, namespace)
    where = ("-n", namespace, "--kubeconfig", str(cluster.kubeconfig))
    tenant = await tenant_kubeconfig(client, cluster, namespace, tmp_path, TENANT_RULES)
    rights = ("-n", namespace, "--kubeconfig", tenant)
    found = await asyncio.gather(
        grove("status", "demo", *where, *NO_LEASE),
        grove("status", "graph", *where, *NO_LEASE),
        grove("status", "dmo", *where),
        grove("status", "demo", "-n", "default", *where[2:]),
        grove("events", "demo", *where),
        grove("events", "demo", "--warnings", "-o", "json", *where),
        grove("events", "nothing/demo", *where),
        grove("events", "demo", *rights),
        grove("status", "demo", *rights),
        grove("status", "demo", "-w", *rights),
    )
    alone, of_graph, misspelled, elsewhere, events, warnings, unknown, denied, tenant_status, unwatched = (
        found
    )
    assert alone.code == 3
    assert steady(alone.out, namespace) == NOT_RECONCILED
    assert of_graph.code == 3
    assert of_graph.out.startswith(f"DynamoGraphDeployment {namespace}/graph: Unknown\n")
    assert misspelled == (1, "", f"grove: no workload dmo in namespace {namespace}: did you mean demo?\n")
    assert elsewhere.err == (
        f"grove: no workload demo in namespace default: there is one in namespace {namespace}: "
        f"add -n {namespace}\n"
    )
    assert [line.split(maxsplit=1)[1] for line in events.out.splitlines()[1:]] == [
        "Normal   Tried   PodCliqueSet/demo  in two lines (x4)",
        "Warning  Tried   PodCliqueSet/demo  \N{REPLACEMENT CHARACTER}[2Jcleared (x7)",
    ]
    assert [each["count"] for each in json.loads(warnings.out)["items"]] == [7]
    assert unknown.err.startswith("grove: nothing/demo: unknown kind nothing: choose one of ")
    assert 'cannot list resource "events"' in denied.err
    assert tenant_status.code == 2
    assert "cannot watch resource" in unwatched.err
    assert {each.err.count("\n") for each in (misspelled, elsewhere, unknown, denied, unwatched)} == {1}


NOT_RECONCILED = """\
PodCliqueSet NAMESPACE/demo: Unknown
0/1 replicas available, no pods yet
operator: no Lease no-such-lease: none is installed, or it runs without leader election or with a Lease of \
another name (--lease)
waits for
1. NoOperatorLeading
   there is no Lease of an operator
   -> start the operator, or see why it cannot hold its lease
"""
TENANT_RULES = (
    {"apiGroups": ["", "grove.io", "scheduler.grove.io"], "resources": ["*"], "verbs": ["get", "list"]},
)
