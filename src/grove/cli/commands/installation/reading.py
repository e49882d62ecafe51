"""Reads an installation, with the rights of the user: what may not be read is recorded with the right that is
missing."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from grove.api.configuration import loading
from grove.api.configuration.types import OperatorConfiguration
from grove.api.crds import crd
from grove.api.types.podcliqueset import PodCliqueSet
from grove.cli import program
from grove.cli.commands.installation.facts import Body, Installation, OperatorDeployment, Unreadable
from grove.dynamo.api import crd_definitions
from grove.kube import yaml_parser
from grove.kube.auth.config import Config
from grove.kube.client.client import Client
from grove.kube.client.resource import CONFIG_MAPS, CUSTOM_RESOURCE_DEFINITIONS, DEPLOYMENTS, LEASES, Resource
from grove.kube.errors import ApiError, Forbidden, Invalid, MethodNotAllowed, NotFound, Unauthorized
from grove.kube.leader.lease import Lease
from grove.operator.caches.resources import resource_of
from grove.webhooks.registrations import SERVICE, served

T = TypeVar("T")
_SETS = resource_of(PodCliqueSet.KIND)
_CHART = {"app.kubernetes.io/name": SERVICE}
_GATE = re.compile(rb'^kubernetes_feature_enabled\{name="([^"]+)",[^}]*\} ([01])', re.MULTILINE)
_KUBERNETES_GROUPS = ("resource.k8s.io", "scheduling.k8s.io")
_FOREIGN_GROUPS = ("scheduling.run.ai", "kai.scheduler", "scheduling.volcano.sh", "resource.nvidia.com")


class _Version(msgspec.Struct, frozen=True):
    git_version: str = msgspec.field(name="gitVersion", default="")


class _GroupVersion(msgspec.Struct, frozen=True):
    version: str = ""


class _Group(msgspec.Struct, frozen=True):
    versions: tuple[_GroupVersion, ...] = ()


class _ConfigMap(msgspec.Struct, frozen=True):
    data: dict[str, str] = {}


async def read_installation(connection: Config, lease: str, namespace: str) -> Installation:
    """The installation. `namespace`: where a set is tried, in a dry run. Raises KubeError if the server
    cannot be reached, or does not accept the credentials."""
    async with Client(connection) as client:
        version = await _server_version(client)  # first: its failure is the error to report
        definitions, leases, webhooks, review, groups, gates = await asyncio.gather(
            _known(lambda: _by_name(client, CUSTOM_RESOURCE_DEFINITIONS, _definition_names())),
            _known(lambda: _leases(client, lease)),
            _known(lambda: _webhooks(client)),
            _review(client, namespace),
            _known(lambda: _served(client)),
            _known(lambda: _gates(client)),
        )
        homes = [each.metadata.namespace for each in leases] if not isinstance(leases, Unreadable) else []
        deployments = await _deployments(client, [*homes, "grove-system"])
        configuration = await _known(lambda: _configuration(client, deployments))
    return Installation(
        version=program.version(),
        server=connection.server,
        server_version=version,
        definitions=definitions,
        leases=leases,
        deployments=deployments,
        configuration=configuration,
        webhooks=webhooks,
        review=review,
        served=groups,
        gates=gates,
        now=time.time(),
    )


async def _known(read: Callable[[], Awaitable[T]]) -> T | Unreadable:
    try:
        return await read()
    except Unauthorized:
        raise
    except Forbidden as error:
        return Unreadable(f"no right to {error.action}")
    except ApiError as error:
        return Unreadable(str(error))


async def _server_version(client: Client) -> str:
    reply = await client.raw("GET", "/version")
    try:
        return msgspec.json.decode(reply.body, type=_Version).git_version
    except msgspec.MsgspecError:
        return ""


def _definition_names() -> list[str]:
    wanted = (*crd.all_definitions(), *crd_definitions.all_definitions())
    return [each["metadata"]["name"] for each in wanted]


async def _by_name(client: Client, resource: Resource, names: Iterable[str]) -> Mapping[str, Body | None]:
    async def read(name: str) -> Body | None:
        try:
            found: Body = await client.get(resource, name, as_type=dict)
        except NotFound:
            return None
        return found

    listed = tuple(names)
    return dict(zip(listed, await asyncio.gather(*map(read, listed)), strict=True))


async def _webhooks(client: Client) -> Mapping[str, Body | None]:
    found: dict[str, Body | None] = {}
    for each in served(authorizer=True, dynamo=True):
        found |= await _by_name(client, each.resource, (each.name,))
    return found


async def _leases(client: Client, name: str) -> tuple[Lease, ...]:
    return tuple((await client.list(LEASES, as_type=Lease, fields=f"metadata.name={name}")).items)


async def _deployments(client: Client, homes: list[str]) -> tuple[OperatorDeployment, ...] | Unreadable:
    """Those of the chart, in the whole cluster, or where the operator is expected."""

    async def listed(namespace: str | None) -> tuple[OperatorDeployment, ...]:
        found = await client.list(DEPLOYMENTS, as_type=OperatorDeployment, namespace=namespace, labels=_CHART)
        return tuple(found.items)

    everywhere = await _known(lambda: listed(None))
    if not isinstance(everywhere, Unreadable):
        return everywhere
    for home in dict.fromkeys(homes):
        found = await _known(lambda home=home: listed(home))  # type: ignore[misc]
        if not isinstance(found, Unreadable) and found:
            return found
    return everywhere


async def _configuration(
    client: Client, deployments: tuple[OperatorDeployment, ...] | Unreadable
) -> OperatorConfiguration | Unreadable:
    if isinstance(deployments, Unreadable):
        return deployments
    for each in deployments:
        if name := each.config_map:
            home = each.metadata.namespace
            found = await client.get(CONFIG_MAPS, name, namespace=home, as_type=_ConfigMap)
            return _parsed(found.data.get("config.yaml", ""), f"ConfigMap {home}/{name}")
    return Unreadable("there is no Deployment of the chart that names a ConfigMap")


def _parsed(text: str, where: str) -> OperatorConfiguration | Unreadable:
    try:
        return loading.check(yaml_parser.parse(text))[0]
    except (yaml_parser.YamlError, ValueError) as problem:
        return Unreadable(f"{where}: {problem}")


async def _review(client: Client, namespace: str) -> str | Unreadable:
    """What the API server says to a set that breaks a rule, in a dry run."""
    try:
        await client.create(_SETS, _broken_set(), namespace=namespace, dry_run=True, as_type=dict)
    except (NotFound, MethodNotAllowed):
        return Unreadable("PodCliqueSets are not served")
    except Unauthorized:
        raise
    except Forbidden as error:
        if "admission webhook" not in error.status.message:
            return Unreadable(f"no right to {error.action}")
        return error.status.message
    except (Invalid, ApiError) as error:
        return error.status.message
    return ""


def _broken_set() -> Body:
    """A set that fits the schema; its group names a clique that it does not have."""
    pod = {"containers": [{"name": "main", "image": "none"}]}
    clique = {"name": "a", "spec": {"roleName": "a", "replicas": 1, "podSpec": pod}}
    group = {"name": "b", "cliqueNames": ["missing"]}
    kind = PodCliqueSet.KIND
    return {
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "metadata": {"generateName": "grove-doctor-"},
        "spec": {"replicas": 1, "template": {"cliques": [clique], "podCliqueScalingGroups": [group]}},
    }


async def _served(client: Client) -> Mapping[str, tuple[str, ...]]:
    async def versions(group: str) -> tuple[str, ...]:
        try:
            reply = await client.raw("GET", f"/apis/{group}")
        except NotFound:
            return ()
        found = msgspec.json.decode(reply.body, type=_Group)
        return tuple(each.version for each in found.versions)

    groups = (*_KUBERNETES_GROUPS, *_FOREIGN_GROUPS)
    return dict(zip(groups, await asyncio.gather(*map(versions, groups)), strict=True))


async def _gates(client: Client) -> dict[str, bool]:
    reply: Any = await client.raw("GET", "/metrics")
    return {name.decode(): value == b"1" for name, value in _GATE.findall(reply.body)}
