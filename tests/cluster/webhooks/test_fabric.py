"""All admission rules of fabric domains on the real API server, with and without automatic MNNVL."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec
import pytest

from grove.api.naming.annotations import SHARED_WITH_NAMESPACES
from grove.kube.auth import config
from grove.kube.client.client import MERGE, Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import NAMESPACES, RESOURCE_CLAIM_TEMPLATES
from grove.kube.errors import ApiError
from grove.local.cluster.lifecycle import LocalCluster
from tests.cluster.operator.support.objects import SETS
from tests.cluster.webhooks.harness import Body, admitting, eventually, refusal
from tests.namespaces import make_namespace
from tests.rules.builders import bare, changed, clique, workload
from tests.rules.fabric import domain_annotations as keys
from tests.rules.fabric import test_accelerator_claims as by_claims
from tests.rules.fabric import test_domain_updates as updates
from tests.rules.fabric import test_domains as rules
from tests.rules.messages import C

DENIED = 'admission webhook "pcs.validating.webhooks.grove.io" denied the request: '
Row = tuple[dict[str, Any], list[str]]


def joined(errors: list[str]) -> str:
    """The errors as Kubernetes joins them."""
    return errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"


def changed_set(changes: dict[str, Any], namespace: str) -> Body:
    body = changed(workload(), changes)
    return {**body, "metadata": {**body["metadata"], "namespace": namespace}}


async def create_refusal(client: Client, namespace: str, changes: dict[str, Any]) -> str:
    return await refusal(client, SETS, changed_set(changes, namespace), namespace=namespace)


async def update_refusal(client: Client, namespace: str, old: dict[str, Any], new: dict[str, Any]) -> str:
    """The message for a refused change of a stored set; empty if it is accepted."""
    created = await client.create(SETS, changed_set(old, namespace), namespace=namespace, as_type=dict)
    after = changed_set(new, namespace)
    kept = {key: created["metadata"][key] for key in ("name", "resourceVersion")}
    try:
        body = {**after, "metadata": {**after["metadata"], **kept}}
        await client.replace(SETS, kept["name"], body, namespace=namespace, as_type=Object)
    except ApiError as error:
        return error.status.message
    finally:
        await client.delete(SETS, kept["name"], namespace=namespace, as_type=Object)
    return ""


async def test_rules_with_automatic_mnnvl(
    cluster: LocalCluster, crds: object, client: Client, namespace: str
) -> None:
    connection = config.load(cluster.kubeconfig)
    table: list[Row] = [*rules.ALWAYS, *rules.WITH_AUTOMATION]
    network = {"autoMNNVLEnabled": True, "autoMNNVLDetectDRA": True}
    async with admitting(client, connection, namespace, network=network):
        for changes, errors in table:
            assert await create_refusal(client, namespace, changes) == DENIED + joined(errors)
        for changes in rules.ACCEPTED_WITH_AUTOMATION:
            assert await create_refusal(client, namespace, changes) == ""
        for old, new, errors in updates.UPDATES:
            if keys.NAME in str(old) or keys.NAME in str(new):
                old, new = {**keys.OPTED_OUT, **old}, {**keys.OPTED_OUT, **new}  # so that it can be created
            elif old == keys.GPUS:
                continue  # a set with GPUs gets the annotation on creation
            assert await update_refusal(client, namespace, old, new) == DENIED + joined(errors)
        created = await client.create(
            SETS, changed_set(keys.GPUS, namespace), namespace=namespace, as_type=dict
        )
        assert created["metadata"]["annotations"][keys.KEY] == "enabled"
        # V27: replacing the stored set with the manifest removes the annotation, which is refused.
        again = changed_set(keys.GPUS, namespace)
        again["metadata"] |= {"resourceVersion": created["metadata"]["resourceVersion"]}
        with pytest.raises(ApiError, match="cannot be removed after creation"):
            await client.replace(SETS, "app", again, namespace=namespace, as_type=Object)
        await client.patch(SETS, "app", {"spec": {"replicas": 2}}, namespace=namespace, as_type=Object)
        await _warnings(client, namespace)
        await _gpus_by_claim(client, namespace)
        await _gpus_by_claim_of_another_namespace(client, namespace)
        await _sets_that_share_a_domain(client, namespace)


async def _warnings(client: Client, namespace: str) -> None:
    """Of misspelled annotations, and of GPUs that are added to a set without domains."""

    async def warning(verb: str, path: str, body: Body) -> str:
        kind = MERGE if verb == "PATCH" else "application/json"
        reply = await client.raw(verb, path, msgspec.json.encode(body), content_type=kind)
        return reply.headers.get("Warning", "")

    typo = changed_set({"metadata.name": "typo", **keys.annotated("disabled")}, namespace)
    typo["metadata"]["annotations"]["grove.io/auto-mnvl"] = "disabled"
    said = await warning("POST", SETS.path(namespace), typo)
    assert "grove.io/auto-mnvl is not known and has no effect: did you mean grove.io/auto-mnnvl?" in said
    plain = changed_set({"metadata.name": "plain"}, namespace)
    assert await warning("POST", SETS.path(namespace), plain) == ""
    with_gpus = changed_set({"metadata.name": "plain", **keys.GPUS}, namespace)
    patch = {"spec": {"template": {"cliques": with_gpus["spec"]["template"]["cliques"]}}}
    said = await warning("PATCH", SETS.path(namespace, "plain"), patch)
    assert "its pods will be in no ComputeDomain" in said
    without = {"spec": {"template": {"cliques": plain["spec"]["template"]["cliques"]}}}
    said = await warning("PATCH", SETS.path(namespace, "app"), without)
    assert "its pods will leave their ComputeDomain: no container requests accelerators" in said


async def _gpus_by_claim(client: Client, namespace: str) -> None:
    """B10: the devices of a claim are looked up when a set is created."""
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}
    body = {"metadata": {"name": "eight"}, "spec": {"spec": {"devices": {"requests": [request]}}}}
    await client.create(RESOURCE_CLAIM_TEMPLATES, body, namespace=namespace, as_type=Object)
    body = changed_set({**by_claims.CLAIMING, "metadata.name": "claiming"}, namespace)
    created = await client.create(SETS, body, namespace=namespace, as_type=dict)
    assert created["metadata"]["annotations"] == {keys.KEY: "enabled", by_claims.CLAIMS: "router/gpus"}
    for name, template, scope, detected in (
        ("own-template", "gpus", "PerReplica", True),
        ("other-template", "eight", "PerReplica", True),
        ("shared-gpus", "eight", "AllReplicas", False),
    ):
        shared = by_claims.sharing(by_claims.C, by_claims.entry(template, scope), **{"metadata.name": name})
        shared["metadata"]["namespace"] = namespace
        reply = await client.raw("POST", SETS.path(namespace), msgspec.json.encode(shared))
        annotations = msgspec.json.decode(reply.body)["metadata"].get("annotations") or {}
        expected = {keys.KEY: "enabled", by_claims.CLAIMS: "router/*"} if detected else {}
        assert annotations == expected
        assert ("share one claim for accelerators" in reply.headers.get("Warning", "")) is not detected


async def _gpus_by_claim_of_another_namespace(client: Client, namespace: str) -> None:
    """A template that is not shared with the namespace gives the same response as one that does not exist."""
    other, numbers = f"{namespace}-others", itertools.count()
    await make_namespace(client, other)

    async def response() -> tuple[Body, str]:
        """The annotations and the warning of a set that refers to the template."""
        entry, name = by_claims.entry("private", namespace=other), f"user-{next(numbers)}"
        body = by_claims.sharing(by_claims.C, entry, **{"metadata.name": name})
        body["metadata"]["namespace"] = namespace
        reply = await client.raw("POST", SETS.path(namespace), msgspec.json.encode(body))
        annotations = msgspec.json.decode(reply.body)["metadata"].get("annotations") or {}
        return annotations, reply.headers.get("Warning", "")

    async def permitted() -> bool:
        """Whether the claim counts: the cache of the webhooks may lag behind."""
        return (await response())[0].get(by_claims.CLAIMS) == "router/*"

    missing = await response()
    assert missing[0] == {}
    assert f"ResourceClaimTemplate {other}/private does not exist or is not shared" in missing[1]
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}
    template = {"metadata": {"name": "private"}, "spec": {"spec": {"devices": {"requests": [request]}}}}
    await client.create(RESOURCE_CLAIM_TEMPLATES, template, namespace=other, as_type=Object)
    assert await response() == missing
    consent = {"metadata": {"annotations": {SHARED_WITH_NAMESPACES: namespace}}}
    await client.patch(RESOURCE_CLAIM_TEMPLATES, "private", consent, namespace=other, as_type=Object)
    await eventually(permitted)
    await client.delete(NAMESPACES, other, as_type=Object)


async def _sets_that_share_a_domain(client: Client, namespace: str) -> None:
    """B2: a set with another allocation mode than an existing set of the same domain is refused."""
    share = {keys.NAME: "team", keys.ALLOCATION: "All"}
    first = {**keys.OPTED_OUT, f"{C}.annotations": share, "metadata.name": "first"}
    await client.create(SETS, changed_set(first, namespace), namespace=namespace, as_type=Object)

    async def refused() -> bool:
        """The webhooks may not have the first set in their cache yet."""
        other = {**keys.OPTED_OUT, **keys.named("team"), "metadata.name": "other"}
        return "PodCliqueSet first shares the domain" in await create_refusal(client, namespace, other)

    await eventually(refused)


async def test_stored_sets_stay_valid_if_names_are_disabled(
    cluster: LocalCluster, crds: object, client: Client, namespace: str
) -> None:
    """V9; and V23 to V26 with sets that were stored without webhooks or under other rules."""

    async def store(name: str, body: Body) -> None:
        named = {**body, "metadata": {**body["metadata"], "name": name}}
        await client.create(SETS, named, namespace=namespace, as_type=Object)

    for index, both in enumerate(updates.UNCHANGED):
        await store(f"stored-{index}", changed_set(both, namespace))
    router, worker = ("router", {}), ("worker", keys.named("team")[f"{C}.annotations"])
    await store("ordered", {**bare(*map(_clique, (router, worker))), **_named(namespace)})
    network = {"autoMNNVLEnabled": True, "explicitComputeDomains": False}
    async with admitting(client, config.load(cluster.kubeconfig), namespace, network=network):
        for changes, errors in rules.WITHOUT_NAMES:
            assert await create_refusal(client, namespace, changes) == DENIED + joined(errors)
        for index in range(len(updates.UNCHANGED)):
            more = {"metadata": {"labels": {"touched": "yes"}}, "spec": {"replicas": 2}}
            await client.patch(SETS, f"stored-{index}", more, namespace=namespace, as_type=Object)
        # V25: cliques are matched by name, whatever their position in the list.
        template = bare(*map(_clique, (worker, router)))["spec"]["template"]
        await client.patch(
            SETS, "ordered", {"spec": {"template": template}}, namespace=namespace, as_type=Object
        )
        swapped = bare(*map(_clique, (("worker", {}), router)))["spec"]["template"]
        with pytest.raises(ApiError, match=r"cliques\[0\].*cannot be removed after creation"):
            await client.patch(
                SETS, "ordered", {"spec": {"template": swapped}}, namespace=namespace, as_type=Object
            )
        for name in ("ordered", *(f"stored-{index}" for index in range(len(updates.UNCHANGED)))):
            await client.delete(SETS, name, namespace=namespace, as_type=Object)


def _clique(named: tuple[str, dict[str, str]]) -> Body:
    name, annotations = named
    return {**clique(name), "annotations": annotations}


def _named(namespace: str) -> Body:
    return {"metadata": {"name": "ordered", "namespace": namespace}}


async def test_rules_without_automatic_mnnvl(
    cluster: LocalCluster, crds: object, client: Client, namespace: str
) -> None:
    connection = config.load(cluster.kubeconfig)
    table: list[Row] = [*rules.ALWAYS, *rules.WITHOUT_AUTOMATION]
    async with admitting(client, connection, namespace):
        for changes, errors in table:
            assert await create_refusal(client, namespace, changes) == DENIED + joined(errors)
        for changes in rules.ACCEPTED_WITHOUT:
            assert await create_refusal(client, namespace, changes) == ""
        created = await client.create(
            SETS, changed_set(keys.GPUS, namespace), namespace=namespace, as_type=dict
        )
        assert keys.KEY not in created["metadata"].get("annotations", {})
        added = {"metadata": {"annotations": {keys.KEY: "enabled"}}}
        with pytest.raises(ApiError, match="cannot be added after creation"):
            await client.patch(SETS, "app", added, namespace=namespace, as_type=Object)
