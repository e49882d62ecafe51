"""`grove operator` with its webhooks: on every replica, with no more rights than it needs, or not at all."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

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


async def url_of(operator: OperatorProcess) -> str:
    place = await operator.hear("listening", key="server.webhooks.port")
    return f"https://127.0.0.1:{place['port']}"


def wrong() -> dict[str, Any]:
    body = good("wrong")
    body["spec"]["template"]["terminationDelay"] = "0s"
    return body


async def test_a_follower_answers_as_the_leader_does(
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
                        said = await refusal(client, SETS, wrong(), namespace=namespace)
                        return "terminationDelay: Invalid value" in said

                    async def ready(operator: OperatorProcess = operator) -> bool:
                        return (await operator.probe("/readyz"))[0] == 200

                    await eventually(refuses)
                    await eventually(ready)


@pytest.mark.parametrize(
    ("keys", "words"),
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
async def test_what_could_never_work_is_one_line(
    cluster: LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keys: dict[str, Any], words: str
) -> None:
    monkeypatch.delitem(os.environ, "GROVE_OPERATOR_SERVICE_ACCOUNT_NAME", raising=False)
    async with running(tmp_path, cluster.kubeconfig, configuration(**keys)) as operator:
        _, said = await operator.process.communicate()
    assert (operator.process.returncode, said.decode()) == (4, f"grove: {words}\n")


def rule(group: str, resource: str, verbs: str, *names: str) -> dict[str, Any]:
    named = {"resourceNames": list(names)} if names else {}
    return {"apiGroups": [group], "resources": [resource], "verbs": verbs.split(), **named}


async def grant(
    client: Client, user: str, namespace: str, *rules: dict[str, Any]
) -> tuple[Resource, Resource]:
    """Exactly these rights, in one namespace or everywhere."""
    role, binding = (ROLES, ROLE_BINDINGS) if namespace else (CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS)
    where = {"namespace": namespace} if namespace else {}
    metadata = {"metadata": {"name": "keeper"}}
    await client.create(role, {**metadata, "rules": list(rules)}, as_type=Object, **where)
    subject = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": role.kind, "name": "keeper"}
    bound = {**metadata, "subjects": [subject], "roleRef": reference}
    await client.create(binding, bound, as_type=Object, **where)
    return role, binding


async def test_certificates_are_kept_with_rights_to_these_names_only(
    cluster: LocalCluster, crds: object, client: Client, namespace: str
) -> None:
    user = account(namespace, "keeper")
    names = {each.resource.plural: [] for each in served(authorizer=True)}
    for each in served(authorizer=True):
        names[each.resource.plural].append(each.name)
    webhooks = [
        rule("admissionregistration.k8s.io", plural, "get list watch patch", *found)
        for plural, found in names.items()
    ]
    made = await grant(client, user, "", rule("", "secrets", "create"), *webhooks)
    await grant(client, user, namespace, rule("", "secrets", "get patch", SECRET))
    headers = (("Impersonate-User", user), ("Impersonate-Group", "system:authenticated"))
    connection = replace(config.load(cluster.kubeconfig), headers=headers)
    wanted = configurations(UrlAddress("https://127.0.0.1:1"))
    for body in wanted:
        body["webhooks"][0]["namespaceSelector"] = {"matchLabels": {"nowhere": "true"}}
    try:
        async with registering(client, wanted), Client(connection) as limited:
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
        for resource in made:
            await client.delete(resource, "keeper", as_type=Object)


async def test_a_brought_certificate_needs_no_rights_at_all(
    cluster: LocalCluster, crds: object, client: Client, namespace: str
) -> None:
    """Whom the API server trusts cannot be seen then, and is not waited for."""
    headers = (("Impersonate-User", "nobody"), ("Impersonate-Group", "system:authenticated"))
    async with Client(replace(config.load(cluster.kubeconfig), headers=headers)) as limited:
        callers = WebhookConfigurations(served(authorizer=False))
        watching = asyncio.create_task(callers.watch(limited, needed=False))

        async def known() -> bool:
            return callers.ready

        await eventually(known)
        assert list(callers) == []
        watching.cancel()
        await asyncio.wait([watching])


async def test_a_set_that_is_wrong_is_accepted_where_nobody_registered_us(
    client: Client, crds: object, namespace: str
) -> None:
    """What the other tests show is shown by the webhooks, not by the schema."""
    try:
        await client.create(SETS, wrong(), namespace=namespace, as_type=Object, dry_run=True)
    except ApiError as error:
        pytest.fail(str(error))
