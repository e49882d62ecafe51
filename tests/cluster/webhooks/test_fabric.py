"""Every rule about fabric domains on the real API server, with automation on and off."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec
import pytest

from grove.api.naming.annotations import SHARED_WITH_NAMESPACES
from grove.kube.auth import config
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import NAMESPACES, RESOURCE_CLAIM_TEMPLATES
from grove.kube.errors import ApiError
from grove.local.cluster.lifecycle import LocalCluster
from tests.cluster.operator.support.objects import SETS
from tests.cluster.webhooks.harness import Body, admitting, eventually, refusal
from tests.namespaces import make_namespace
from tests.rules.builders import bare, changed, clique, workload
from tests.rules.fabric import test_accelerator_claims as by_claims
from tests.rules.fabric import test_domains as rules

OURS = 'admission webhook "pcs.validating.webhooks.grove.io" denied the request: '
Row = tuple[dict[str, Any], list[str]]


def words(errors: list[str]) -> str:
    """Several errors as Kubernetes joins them."""
    return errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"


def here(changes: dict[str, Any], namespace: str) -> Body:
    body = changed(workload(), changes)
    return {**body, "metadata": {**body["metadata"], "namespace": namespace}}


async def said(client: Client, namespace: str, changes: dict[str, Any]) -> str:
    return await refusal(client, SETS, here(changes, namespace), namespace=namespace)


async def said_to_update(client: Client, namespace: str, old: dict[str, Any], new: dict[str, Any]) -> str:
    """What is said to a change of a stored set."""
    made = await client.create(SETS, here(old, namespace), namespace=namespace, as_type=dict)
    after = here(new, namespace)
    kept = {key: made["metadata"][key] for key in ("name", "resourceVersion")}
    try:
        body = {**after, "metadata": {**after["metadata"], **kept}}
        await client.replace(SETS, kept["name"], body, namespace=namespace, as_type=Object)
    except ApiError as error:
        return error.status.message
    finally:
        await client.delete(SETS, kept["name"], namespace=namespace, as_type=Object)
    return ""


async def test_with_automation(cluster: LocalCluster, crds: object, client: Client, namespace: str) -> None:
    connection = config.load(cluster.kubeconfig)
    table: list[Row] = [*rules.ALWAYS, *rules.WITH_AUTOMATION]
    network = {"autoMNNVLEnabled": True, "autoMNNVLDetectDRA": True}
    async with admitting(client, connection, namespace, network=network):
        for changes, errors in table:
            assert await said(client, namespace, changes) == OURS + words(errors)
        for changes in rules.ACCEPTED_WITH_AUTOMATION:
            assert await said(client, namespace, changes) == ""
        for old, new, errors in rules.UPDATES:
            if rules.NAME in str(old) or rules.NAME in str(new):
                old, new = {**rules.OUT, **old}, {**rules.OUT, **new}  # so that it can be made
            elif old == rules.GPUS:
                continue  # who has GPUs is marked when it is made
            assert await said_to_update(client, namespace, old, new) == OURS + words(errors)
        made = await client.create(SETS, here(rules.GPUS, namespace), namespace=namespace, as_type=dict)
        assert made["metadata"]["annotations"][rules.KEY] == "enabled"
        # V27: the manifest as it was, put in place of what is stored, takes the mark away.
        again = here(rules.GPUS, namespace)
        again["metadata"] |= {"resourceVersion": made["metadata"]["resourceVersion"]}
        with pytest.raises(ApiError, match="cannot be removed after creation"):
            await client.replace(SETS, "app", again, namespace=namespace, as_type=Object)
        await client.patch(SETS, "app", {"spec": {"replicas": 2}}, namespace=namespace, as_type=Object)
        await _gpus_by_claim(client, namespace)
        await _gpus_by_claim_of_another_namespace(client, namespace)
        await _sharers(client, namespace)


async def _gpus_by_claim(client: Client, namespace: str) -> None:
    """B10: what a claim is for is looked up when a set is made."""
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}
    body = {"metadata": {"name": "eight"}, "spec": {"spec": {"devices": {"requests": [request]}}}}
    await client.create(RESOURCE_CLAIM_TEMPLATES, body, namespace=namespace, as_type=Object)
    wanted = here({**by_claims.ASKED, "metadata.name": "claiming"}, namespace)
    made = await client.create(SETS, wanted, namespace=namespace, as_type=dict)
    assert made["metadata"]["annotations"] == {rules.KEY: "enabled", by_claims.CLAIMS: "router/gpus"}
    for name, template, scope, noted in (
        ("own", "gpus", "PerReplica", True),
        ("theirs", "eight", "PerReplica", True),
        ("crowd", "eight", "AllReplicas", False),
    ):
        shared = by_claims.sharing(by_claims.C, by_claims.entry(template, scope), **{"metadata.name": name})
        shared["metadata"]["namespace"] = namespace
        reply = await client.raw("POST", SETS.path(namespace), msgspec.json.encode(shared))
        annotations = msgspec.json.decode(reply.body)["metadata"].get("annotations") or {}
        expected = {rules.KEY: "enabled", by_claims.CLAIMS: "router/*"} if noted else {}
        assert annotations == expected
        assert ("share one claim for accelerators" in reply.headers.get("Warning", "")) is not noted


async def _gpus_by_claim_of_another_namespace(client: Client, namespace: str) -> None:
    """Without consent the answer is the same as for a template that does not exist."""
    other, numbers = f"{namespace}-others", itertools.count()
    await make_namespace(client, other)

    async def answer() -> tuple[Body, str]:
        entry, name = by_claims.entry("private", namespace=other), f"spy-{next(numbers)}"
        body = by_claims.sharing(by_claims.C, entry, **{"metadata.name": name})
        body["metadata"]["namespace"] = namespace
        reply = await client.raw("POST", SETS.path(namespace), msgspec.json.encode(body))
        noted = msgspec.json.decode(reply.body)["metadata"].get("annotations") or {}
        return noted, reply.headers.get("Warning", "")

    async def permitted() -> bool:
        """The cache of the webhooks may be a moment behind."""
        return (await answer())[0].get(by_claims.CLAIMS) == "router/*"

    missing = await answer()
    assert missing[0] == {}
    assert f"ResourceClaimTemplate {other}/private does not exist or is not shared" in missing[1]
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}
    template = {"metadata": {"name": "private"}, "spec": {"spec": {"devices": {"requests": [request]}}}}
    await client.create(RESOURCE_CLAIM_TEMPLATES, template, namespace=other, as_type=Object)
    assert await answer() == missing
    consent = {"metadata": {"annotations": {SHARED_WITH_NAMESPACES: namespace}}}
    await client.patch(RESOURCE_CLAIM_TEMPLATES, "private", consent, namespace=other, as_type=Object)
    await eventually(permitted)
    await client.delete(NAMESPACES, other, as_type=Object)


async def _sharers(client: Client, namespace: str) -> None:
    """B2: who shares a domain says the same about it, whoever came first."""
    share = {rules.NAME: "team", rules.ALLOCATION: "All"}
    first = {**rules.OUT, f"{rules.C}.annotations": share, "metadata.name": "first"}
    await client.create(SETS, here(first, namespace), namespace=namespace, as_type=Object)

    async def refused() -> bool:
        """What was made a moment ago may not be known yet."""
        other = {**rules.OUT, **rules.named("team"), "metadata.name": "other"}
        return "PodCliqueSet first shares the domain" in await said(client, namespace, other)

    await eventually(refused)


async def test_where_names_are_forbidden_and_what_was_stored_before_is_left_alone(
    cluster: LocalCluster, crds: object, client: Client, namespace: str
) -> None:
    """V9; and V23 to V26 with sets that were stored when nobody asked, or under other rules."""

    async def store(name: str, body: Body) -> None:
        named = {**body, "metadata": {**body["metadata"], "name": name}}
        await client.create(SETS, named, namespace=namespace, as_type=Object)

    for index, both in enumerate(rules.UNCHANGED):
        await store(f"stored-{index}", here(both, namespace))
    router, worker = ("router", {}), ("worker", rules.named("team")[f"{rules.C}.annotations"])
    await store("ordered", {**bare(*map(_clique, (router, worker))), **_named(namespace)})
    network = {"autoMNNVLEnabled": True, "explicitComputeDomains": False}
    async with admitting(client, config.load(cluster.kubeconfig), namespace, network=network):
        for changes, errors in rules.WITHOUT_NAMES:
            assert await said(client, namespace, changes) == OURS + words(errors)
        for index in range(len(rules.UNCHANGED)):
            more = {"metadata": {"labels": {"touched": "yes"}}, "spec": {"replicas": 2}}
            await client.patch(SETS, f"stored-{index}", more, namespace=namespace, as_type=Object)
        # V25: cliques are told apart by name, wherever they are in the list.
        template = bare(*map(_clique, (worker, router)))["spec"]["template"]
        await client.patch(
            SETS, "ordered", {"spec": {"template": template}}, namespace=namespace, as_type=Object
        )
        swapped = bare(*map(_clique, (("worker", {}), router)))["spec"]["template"]
        with pytest.raises(ApiError, match=r"cliques\[0\].*cannot be removed after creation"):
            await client.patch(
                SETS, "ordered", {"spec": {"template": swapped}}, namespace=namespace, as_type=Object
            )
        for name in ("ordered", *(f"stored-{index}" for index in range(len(rules.UNCHANGED)))):
            await client.delete(SETS, name, namespace=namespace, as_type=Object)


def _clique(word: tuple[str, dict[str, str]]) -> Body:
    name, annotations = word
    return {**clique(name), "annotations": annotations}


def _named(namespace: str) -> Body:
    return {"metadata": {"name": "ordered", "namespace": namespace}}


async def test_without_automation(
    cluster: LocalCluster, crds: object, client: Client, namespace: str
) -> None:
    connection = config.load(cluster.kubeconfig)
    table: list[Row] = [*rules.ALWAYS, *rules.WITHOUT_AUTOMATION]
    async with admitting(client, connection, namespace):
        for changes, errors in table:
            assert await said(client, namespace, changes) == OURS + words(errors)
        for changes in rules.ACCEPTED_WITHOUT:
            assert await said(client, namespace, changes) == ""
        made = await client.create(SETS, here(rules.GPUS, namespace), namespace=namespace, as_type=dict)
        assert rules.KEY not in made["metadata"].get("annotations", {})
        added = {"metadata": {"annotations": {rules.KEY: "enabled"}}}
        with pytest.raises(ApiError, match="cannot be added after creation"):
            await client.patch(SETS, "app", added, namespace=namespace, as_type=Object)
