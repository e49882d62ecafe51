"""The chart as Helm renders it, and the operator's ServiceAccount of the chart on a real cluster."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import yaml

from grove.kube.auth import config
from grove.kube.auth.config import Config
from grove.kube.client.client import APPLY, Client
from grove.kube.client.resource import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    NAMESPACES,
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
    Resource,
)
from grove.local.cluster.lifecycle import LocalCluster
from tests.cluster.webhooks.harness import eventually
from tests.clusters import REPORTER
from tests.service_accounts import request_token
from tests.shared import ROOT
from tools import helm

Body = dict[str, Any]

CHART = ROOT / "charts" / "grove"
NAMESPACE = "grove-system"
ACCOUNT = "grove-operator"
ADMISSION = "grove-admission"
"""The name of the webhooks' own Deployment, Service and ServiceAccount."""
DASHBOARD = "grove-dashboard"
"""The name of the dashboard's Deployment, Service and ServiceAccount."""
APART: Body = {"admission.separate": True}
TOGETHER: Body = {"admission.separate": False}
"""Values with which the operator serves the webhooks itself."""
_RIGHTS = {
    resource.kind: resource
    for resource in (SERVICE_ACCOUNTS, CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS, ROLES, ROLE_BINDINGS)
}
_AGGREGATE = "rbac.authorization.k8s.io/aggregate-to-"
_LONG = 24 * 3600
ACCESS_REVIEWS = Resource(
    "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False
)


class Refused(Exception):
    """Helm failed; the message is its output."""


@cache
def program() -> Path:
    """Helm, found or built once per run."""
    return helm.find(REPORTER)


def run(*arguments: str | Path, kubeconfig: Path | None = None) -> str:
    """Run Helm; returns its output. Raises Refused."""
    command = [program(), *arguments, *(("--kubeconfig", kubeconfig) if kubeconfig else ())]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode:
        raise Refused(answer.stderr.strip())
    return answer.stdout


def render(values: Body | None = None, *, chart: Path = CHART) -> list[Body]:
    """The rendered objects of the chart, including hooks, without CRDs."""
    given = (f"--set-json={key}={json.dumps(value)}" for key, value in (values or {}).items())
    text = _rendered(chart, *given)
    return [document for document in yaml.load_all(text, yaml.CSafeLoader) if document]


@cache
def _rendered(chart: Path, *values: str) -> str:
    return run("template", "grove", chart, "--namespace", NAMESPACE, *values)


def one(objects: list[Body], kind: str, name: str = "") -> Body:
    """The only object of a kind, or of a kind and name; without a name, not that of the webhooks."""
    (found,) = (
        each
        for each in objects
        if each["kind"] == kind
        and (each["metadata"]["name"] == name if name else each["metadata"]["name"] != ADMISSION)
    )
    return found


def hooked(found: Body) -> str:
    """The events at which Helm runs a hook; empty if the object is not a hook."""
    return (found["metadata"].get("annotations") or {}).get("helm.sh/hook", "")


def operator_rights(values: Body | None = None) -> list[Body]:
    """The operator's ServiceAccount, its roles and their bindings; with APART, also those of the webhooks."""
    return [
        each
        for each in render({**TOGETHER, **(values or {})})
        if each["kind"] in _RIGHTS and not hooked(each) and not aggregated_to(each)
    ]


def aggregated_to(found: Body) -> set[str]:
    """Kubernetes' own roles to which the rules of a ClusterRole are added."""
    labels = found["metadata"].get("labels") or {}
    return {key.removeprefix(_AGGREGATE) for key in labels if key.startswith(_AGGREGATE)}


class Account(msgspec.Struct, frozen=True):
    """The credentials of an account for a cluster."""

    config: Config
    kubeconfig: Path


AWARE: Body = {
    "config.topologyAwareScheduling.enabled": True,
    "config.scheduler.profiles": [
        {"name": "default-scheduler", "config": {"gangScheduling": True}},
        {"name": "kai-scheduler"},
        {"name": "volcano"},
    ],
}
"""Values that enable topologies and every scheduler with its own objects."""
UNPLACED: Body = {
    "config.scheduler.profiles": [{"name": "default-scheduler", "config": {"placement": "Off"}}],
}
"""Values with which the operator places no gangs: the fewest rights."""
PLACING: Body = {
    "config.topologyAwareScheduling.enabled": True,
    "config.scheduler.profiles": [
        {"name": "default-scheduler", "config": {"placement": "All"}},
        {"name": "kai-scheduler"},
        {"name": "volcano"},
    ],
}
"""Values with which the operator places gangs, and writes the objects of other schedulers."""


async def operator_account_of(cluster: LocalCluster, values: Body | None = None, called: str = "") -> Account:
    """The operator's account, with the permissions that the chart grants with these values. `called`: suffix
    of a second account."""
    async with Client(config.load(cluster.kubeconfig)) as client:
        await client.patch(
            NAMESPACES,
            NAMESPACE,
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
            kind=APPLY,
            field_manager="tests",
            as_type=dict,
        )
        rights = operator_rights(values)
        for right in rights:
            await apply(client, _renamed(right, called) if called else right)
        name = f"{ACCOUNT}-{called}" if called else ACCOUNT
        await until_granted(client, rights)
        return await account(client, cluster, NAMESPACE, name)


def _renamed(right: Body, called: str) -> Body:
    for named in (right["metadata"], right.get("roleRef"), *right.get("subjects", ())):
        if named is not None:
            named["name"] += f"-{called}"
    return right


async def grant_lease_and_secret(client: Client, namespace: str) -> None:
    """Allow the operator's lease and Secret in another namespace, as if it was installed there."""
    rights = [
        {**right, "metadata": {**right["metadata"], "namespace": namespace}}
        for right in render(TOGETHER)
        if right["metadata"].get("namespace") == NAMESPACE and right["kind"] in ("Role", "RoleBinding")
    ]
    for right in rights:
        await apply(client, right)
    await until_granted(client, rights)


def granted_roles(rights: list[Body]) -> Iterator[tuple[Body, Body]]:
    """Each subject of a binding among these, with its role."""
    roles = {(each["kind"], *_place(each)): each for each in rights if "rules" in each}
    for binding in (each for each in rights if "roleRef" in each):
        kind, (namespace, _) = binding["roleRef"]["kind"], _place(binding)
        for subject in binding["subjects"]:
            yield subject, roles[kind, namespace, binding["roleRef"]["name"]]


def _place(found: Body) -> tuple[str, str]:
    return found["metadata"].get("namespace", ""), found["metadata"]["name"]


async def until_granted(client: Client, rights: list[Body]) -> None:
    """Wait until RBAC is effective, by one permission of each role: API servers do not report when."""

    async def granted() -> bool:
        return all([await _has(client, subject, role) for subject, role in granted_roles(rights)])

    await eventually(granted)


async def _has(client: Client, subject: Body, role: Body) -> bool:
    rule, user = role["rules"][-1], f"system:serviceaccount:{subject['namespace']}:{subject['name']}"
    group, resource, verb = (rule[key][0] for key in ("apiGroups", "resources", "verbs"))
    name = (rule.get("resourceNames") or [""])[0]
    return await may(client, user, verb, group, resource, role["metadata"].get("namespace", ""), name)


async def may(
    client: Client, user: str, verb: str, group: str, resource: str, namespace: str = "", name: str = ""
) -> bool:
    """Whether the API server permits a user a request for a resource or a subresource."""
    plural, _, subresource = resource.partition("/")
    attributes = {
        "namespace": namespace,
        "group": group,
        "resource": plural,
        "subresource": subresource,
        "name": name,
        "verb": verb,
    }
    body = {
        "apiVersion": ACCESS_REVIEWS.api_version,
        "kind": ACCESS_REVIEWS.kind,
        "spec": {"user": user, "resourceAttributes": attributes},
    }
    return bool((await client.create(ACCESS_REVIEWS, body, as_type=dict))["status"]["allowed"])


async def apply(client: Client, right: Body) -> None:
    meta = right["metadata"]
    await client.patch(
        _RIGHTS[right["kind"]],
        meta["name"],
        right,
        namespace=meta.get("namespace"),
        kind=APPLY,
        field_manager="tests",
        force=True,
        as_type=dict,
    )


async def account(client: Client, cluster: LocalCluster, namespace: str, name: str) -> Account:
    """The credentials of a ServiceAccount, with a token as its pods have it."""
    token = await request_token(client, namespace, name, expirationSeconds=_LONG)
    written = json.loads(cluster.kubeconfig.read_text())
    for user in written["users"]:
        user["user"] = {"token": token}
    for context in written["contexts"]:
        context["context"]["namespace"] = namespace
    file = cluster.kubeconfig.with_name(f"{name}.kubeconfig")
    file.write_text(json.dumps(written))
    return Account(config.load(file), file)
