"""`grove operator` with its webhooks: on every replica, with the least rights, and with invalid
configurations."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from grove.cli.commands.webhooks import webhooks
from grove.kube.auth import config
from grove.kube.certs.serving_context import ServingContext
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    Resource,
)
from grove.kube.errors import ApiError, Forbidden
from grove.local.cluster.lifecycle import LocalCluster
from grove.webhooks.certificate_rotation import CertificateRotator
from grove.webhooks.configuration_watch import WebhookConfigurations
from grove.webhooks.registrations import UrlAddress, account, configurations, served
from tests.cluster.operator.support.objects import SETS
from tests.cluster.operator.support.processes import (
    HERE,
    PATIENT_ELECTION,
    OperatorProcess,
    configuration,
    running,
)
from tests.cluster.webhooks.harness import eventually, good, refusal, registered, registering

pytestmark = pytest.mark.cluster

SECRET = "grove-webhook-server-cert"
ACCOUNT = "certificate-rotator"


async def url_of(operator: OperatorProcess) -> str:
    line = await operator.hear("listening", key="server.webhooks.port")
    return f"https://127.0.0.1:{line['port']}"


def invalid_set() -> dict[str, Any]:
    body = good("invalid")
    body["spec"]["template"]["terminationDelay"] = "0s"
    return body


async def test_leader_and_follower_both_serve_webhooks(
    cluster: LocalCluster, crds: object, client: Client, namespace: str, tmp_path: Path
) -> None:
    election = configuration(leaderElection=PATIENT_ELECTION)
    arguments = (tmp_path, cluster.kubeconfig, election, "--namespace", namespace)
    async with running(*arguments) as leader:
        await leader.hear("working")
        async with running(*arguments) as follower:
            await follower.hear("following")
            for operator in (leader, follower):
                async with registering(client, registered(await url_of(operator), namespace)):

                    async def refuses() -> bool:
                        message = await refusal(client, SETS, invalid_set(), namespace=namespace)
                        return "terminationDelay: Invalid value" in message

                    async def ready(operator: OperatorProcess = operator) -> bool:
                        return (await operator.probe("/readyz"))[0] == 200

                    await eventually(refuses)
                    await eventually(ready)


async def test_printed_configurations_let_the_webhooks_answer(
    cluster: LocalCluster,
    crds: object,
    client: Client,
    namespace: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with running(tmp_path, cluster.kubeconfig, configuration(), "--namespace", namespace) as operator:
        webhooks(url=await url_of(operator))
        bodies = list(yaml.safe_load_all(capsys.readouterr().out))
        for webhook in (each for body in bodies for each in body["webhooks"]):
            webhook["namespaceSelector"] = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
        async with registering(client, bodies):

            async def refuses() -> bool:
                message = await refusal(client, SETS, invalid_set(), namespace=namespace)
                return "terminationDelay: Invalid value" in message

            await eventually(refuses)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (
            {"server": {"webhooks": {**HERE, "certProvisionMode": "manual", "serverCertDir": "/nowhere"}}},
            "server.webhooks.serverCertDir: /nowhere/tls.crt cannot be read (No such file or directory): "
            "mount the serving certificate there",
        ),
        (
            {"authorizer": {"enabled": True}},
            "authorizer.enabled: the operator's ServiceAccount is not known: "
            "set GROVE_OPERATOR_SERVICE_ACCOUNT_NAME",
        ),
    ],
)
async def test_unusable_webhook_configuration_is_one_line(
    cluster: LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keys: dict[str, Any], message: str
) -> None:
    monkeypatch.delitem(os.environ, "GROVE_OPERATOR_SERVICE_ACCOUNT_NAME", raising=False)
    async with running(tmp_path, cluster.kubeconfig, configuration(**keys)) as operator:
        _, stderr = await operator.process.communicate()
    assert (operator.process.returncode, stderr.decode()) == (4, f"grove: {message}\n")


def rule(group: str, resource: str, verbs: str, *names: str) -> dict[str, Any]:
    named = {"resourceNames": list(names)} if names else {}
    return {"apiGroups": [group], "resources": [resource], "verbs": verbs.split(), **named}


async def grant(
    client: Client, user: str, namespace: str, *rules: dict[str, Any]
) -> tuple[Resource, Resource]:
    """Grants the user exactly these rights, in one namespace or in the whole cluster."""
    role, binding = (ROLES, ROLE_BINDINGS) if namespace else (CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS)
    where = {"namespace": namespace} if namespace else {}
    metadata = {"metadata": {"name": ACCOUNT}}
    await client.create(role, {**metadata, "rules": list(rules)}, as_type=Object, **where)
    subject = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": role.kind, "name": ACCOUNT}
    bound = {**metadata, "subjects": [subject], "roleRef": reference}
    await client.create(binding, bound, as_type=Object, **where)
    return role, binding


async def test_certificates_need_rights_to_their_names_only(
    cluster: LocalCluster, crds: object, client: Client, namespace: str
) -> None:
    user = account(namespace, ACCOUNT)
    names = {each.resource.plural: [] for each in served(authorizer=True)}
    for each in served(authorizer=True):
        names[each.resource.plural].append(each.name)
    webhooks = [
        rule("admissionregistration.k8s.io", plural, "get list watch patch", *found)
        for plural, found in names.items()
    ]
    granted = await grant(client, user, "", rule("", "secrets", "create"), *webhooks)
    await grant(client, user, namespace, rule("", "secrets", "get patch", SECRET))
    headers = (("Impersonate-User", user), ("Impersonate-Group", "system:authenticated"))
    connection = replace(config.load(cluster.kubeconfig), headers=headers)
    bodies = configurations(UrlAddress("https://127.0.0.1:1"))
    for body in bodies:
        body["webhooks"][0]["namespaceSelector"] = {"matchLabels": {"nowhere": "true"}}
    try:
        async with registering(client, bodies), Client(connection) as limited:
            callers, serving = WebhookConfigurations(served(authorizer=True)), ServingContext()
            rotator = CertificateRotator(limited, serving, callers, namespace=namespace, secret=SECRET)
            tasks = [asyncio.create_task(callers.watch(limited)), asyncio.create_task(rotator.run())]

            async def announced() -> bool:
                return serving.ready and all(caller.ca_bundle for caller in callers)

            await eventually(announced)
            assert len(callers.present) == 3
            await client.patch(
                SECRETS, SECRET, {"data": {"ca.key": None}}, namespace=namespace, as_type=Object
            )
            await rotator.refresh()
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            with pytest.raises(Forbidden):
                await limited.list(SECRETS, namespace=namespace, as_type=Object)
            with pytest.raises(Forbidden):
                await limited.get(SECRETS, "another", namespace=namespace, as_type=Object)
    finally:
        for resource in granted:
            await client.delete(resource, ACCOUNT, as_type=Object)


async def test_manual_certificate_needs_no_rights(
    cluster: LocalCluster, crds: object, client: Client, namespace: str
) -> None:
    """The webhook configurations cannot be read then, and the operator does not wait for them."""
    headers = (("Impersonate-User", "without-rights"), ("Impersonate-Group", "system:authenticated"))
    async with Client(replace(config.load(cluster.kubeconfig), headers=headers)) as limited:
        callers = WebhookConfigurations(served(authorizer=False))
        watching = asyncio.create_task(callers.watch(limited, needed=False))

        async def known() -> bool:
            return callers.ready

        await eventually(known)
        assert list(callers) == []
        watching.cancel()
        await asyncio.wait([watching])


async def test_invalid_set_is_accepted_without_webhooks(client: Client, crds: object, namespace: str) -> None:
    """Control: in the other tests the webhooks refuse this set, not the schema."""
    try:
        await client.create(SETS, invalid_set(), namespace=namespace, as_type=Object, dry_run=True)
    except ApiError as error:
        pytest.fail(str(error))
