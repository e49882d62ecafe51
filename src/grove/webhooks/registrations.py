"""The webhook configurations: names, paths, rules and match conditions that keep the number of reviews small.

The chart's templates contain the same; a test compares the two. Match conditions exempt requests that must
not depend on the operator: updates of terminating objects that leave the spec unchanged, and the operator's
own writes.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from enum import StrEnum
from typing import Any

from msgspec import Struct

from grove import timing
from grove.api.naming import labels
from grove.api.types.clustertopology import ClusterTopology, ClusterTopologyBinding
from grove.api.types.kind import Kind
from grove.api.types.podclique import PodClique
from grove.api.types.podcliquescalinggroup import PodCliqueScalingGroup
from grove.api.types.podcliqueset import PodCliqueSet
from grove.api.types.podgang import PodGang
from grove.dynamo.api.common import ALPHA, BETA
from grove.dynamo.api.graph_deployment import DynamoGraphDeployment
from grove.kube.client.resource import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS, Resource

Body = dict[str, Any]

SERVICE = "grove-operator"
"""The name of the operator's Service and of its ServiceAccount."""


CONVERT_GRAPH = "/webhooks/convert-dynamographdeployment"
"""The URL path of the conversion webhook."""


class Path(StrEnum):
    """The URL path of an admission webhook."""

    DEFAULT_SET = "/webhooks/default-podcliqueset"
    VALIDATE_SET = "/webhooks/validate-podcliqueset"
    VALIDATE_TOPOLOGY = "/webhooks/validate-clustertopology"
    AUTHORIZE = "/webhooks/authorizer-webhook"
    DEFAULT_GRAPH = "/webhooks/default-dynamographdeployment"
    VALIDATE_GRAPH = "/webhooks/validate-dynamographdeployment"


class Registration(Struct, frozen=True):
    """One webhook configuration object with its webhook."""

    resource: Resource
    name: str
    webhook: str
    path: Path


DEFAULT_SET = Registration(
    MUTATING_WEBHOOKS, "podcliqueset-defaulting-webhook", "pcs.defaulting.webhooks.grove.io", Path.DEFAULT_SET
)
VALIDATE_SET = Registration(
    VALIDATING_WEBHOOKS,
    "podcliqueset-validating-webhook",
    "pcs.validating.webhooks.grove.io",
    Path.VALIDATE_SET,
)
VALIDATE_TOPOLOGY = Registration(
    VALIDATING_WEBHOOKS,
    "clustertopology-validating-webhook",
    "clustertopology.validating.webhooks.grove.io",
    Path.VALIDATE_TOPOLOGY,
)
AUTHORIZE = Registration(
    VALIDATING_WEBHOOKS, "authorizer-webhook", "authorizer.webhooks.grove.io", Path.AUTHORIZE
)

DEFAULT_GRAPH = Registration(
    MUTATING_WEBHOOKS,
    "dynamographdeployment-defaulting-webhook",
    "dgd.defaulting.webhooks.grove.io",
    Path.DEFAULT_GRAPH,
)
VALIDATE_GRAPH = Registration(
    VALIDATING_WEBHOOKS,
    "dynamographdeployment-validating-webhook",
    "dgd.validating.webhooks.grove.io",
    Path.VALIDATE_GRAPH,
)


class ServiceAddress(Struct, frozen=True):
    """The address of the operator inside a cluster."""

    namespace: str
    name: str = SERVICE
    port: int = 9443

    def client_config(self, path: str) -> Body:
        """As a webhook's `clientConfig`."""
        where = {"namespace": self.namespace, "name": self.name, "path": path, "port": self.port}
        return {"service": where}


class UrlAddress(Struct, frozen=True):
    """The address of an operator outside of the cluster, `https://127.0.0.1:9443` for example."""

    base: str

    def client_config(self, path: str) -> Body:
        """As a webhook's `clientConfig`."""
        return {"url": f"{self.base}{path}"}


def account(namespace: str, name: str = SERVICE) -> str:
    """The user name of a ServiceAccount."""
    return f"system:serviceaccount:{namespace}:{name}"


def served(*, authorizer: bool, dynamo: bool = False) -> tuple[Registration, ...]:
    """The webhooks that an operator serves."""
    always = (DEFAULT_SET, VALIDATE_SET, VALIDATE_TOPOLOGY)
    protecting = (AUTHORIZE,) if authorizer else ()
    return (*always, *protecting, *((DEFAULT_GRAPH, VALIDATE_GRAPH) if dynamo else ()))


def configurations(
    address: ServiceAddress | UrlAddress,
    *,
    operator: str = "",
    authorizer: bool = False,
    dynamo: bool = False,
    exempt: Iterable[str] = (),
    ca_bundle: bytes = b"",
) -> list[Body]:
    """The configuration objects. Requests of the users `operator` and `exempt` are not sent to the webhooks;
    without `ca_bundle`, certificate rotation or another injector writes the caBundle."""
    return [
        _configuration(each, address, operator, tuple(exempt), ca_bundle)
        for each in served(authorizer=authorizer, dynamo=dynamo)
    ]


def _configuration(
    registration: Registration,
    address: ServiceAddress | UrlAddress,
    operator: str,
    exempt: tuple[str, ...],
    ca_bundle: bytes,
) -> Body:
    ca_field = {"caBundle": base64.b64encode(ca_bundle).decode()} if ca_bundle else {}
    webhook: Body = {
        "name": registration.webhook,
        "admissionReviewVersions": ["v1"],
        "clientConfig": {**address.client_config(registration.path), **ca_field},
        "failurePolicy": "Fail",
        "matchPolicy": "Exact",
        "sideEffects": "None",
        "timeoutSeconds": timing.WEBHOOK_TIMEOUT_SECONDS,
        "matchConditions": _conditions(registration, operator, exempt),
        "rules": _RULES[registration.path],
    }
    webhooks = [webhook]
    if registration is VALIDATE_TOPOLOGY:
        webhooks.append({**webhook, **_TOPOLOGY_DELETION})
    if registration is AUTHORIZE:
        webhook["objectSelector"] = {"matchLabels": {labels.MANAGED_BY: labels.OPERATOR}}
    if registration.resource is MUTATING_WEBHOOKS:
        webhook["reinvocationPolicy"] = "IfNeeded"
    return {
        "apiVersion": registration.resource.api_version,
        "kind": registration.resource.kind,
        "metadata": {"name": registration.name},
        "webhooks": webhooks,
    }


_NOT_BEING_DELETED = "oldObject == null || !has(oldObject.metadata.deletionTimestamp)"
_OR_SPEC_CHANGED = f"{_NOT_BEING_DELETED} || (object != null && object.spec != oldObject.spec)"
"""A finalizer can keep an object for any time. So an update of a terminating object is exempt only if it
leaves the spec unchanged: finalizers can be removed from invalid objects, and without an operator."""


def _conditions(registration: Registration, operator: str, exempt: tuple[str, ...]) -> list[Body]:
    # Conditions read the stored object: a request could claim a deletionTimestamp of its own.
    if registration is AUTHORIZE:
        conditions = [("not-being-deleted", _NOT_BEING_DELETED)]
    else:
        conditions = [("not-being-deleted-or-spec-changed", _OR_SPEC_CHANGED)]
    if operator:
        conditions.append(("not-by-the-operator", f"request.userInfo.username != {json.dumps(operator)}"))
    if exempt and registration is AUTHORIZE:
        names = json.dumps(list(exempt), separators=(",", ":"))
        conditions.append(("not-by-exempt-users", f"!(request.userInfo.username in {names})"))
    return [{"name": name, "expression": expression} for name, expression in conditions]


_WRITES = ("CREATE", "UPDATE")
_CHANGES = ("UPDATE", "DELETE")
_ALL = ("CREATE", "UPDATE", "DELETE")


def _rule(
    group: str, versions: Iterable[str], resources: Iterable[str], operations: Iterable[str], scope: str
) -> Body:
    return {
        "apiGroups": [group],
        "apiVersions": list(versions),
        "operations": list(operations),
        "resources": list(resources),
        "scope": scope,
    }


def _grove_rule(operations: Iterable[str], *kinds: Kind) -> Body:
    (group,) = {kind.group for kind in kinds}
    (namespaced,) = {kind.namespaced for kind in kinds}
    versions = dict.fromkeys(kind.version for kind in kinds)
    plurals = [kind.plural for kind in kinds]
    return _rule(group, versions, plurals, operations, "Namespaced" if namespaced else "Cluster")


def _namespaced_rule(group: str, versions: Iterable[str], resources: Iterable[str], *operations: str) -> Body:
    return _rule(group, versions, resources, operations, "Namespaced")


_GRAPHS = _rule(
    DynamoGraphDeployment.KIND.group,
    (BETA, ALPHA),
    (DynamoGraphDeployment.KIND.plural,),
    _WRITES,
    "Namespaced",
)

_RULES: dict[Path, list[Body]] = {
    Path.DEFAULT_SET: [_grove_rule(_WRITES, PodCliqueSet.KIND)],
    Path.VALIDATE_SET: [_grove_rule(_WRITES, PodCliqueSet.KIND)],
    Path.VALIDATE_TOPOLOGY: [_grove_rule(_WRITES, ClusterTopology.KIND, ClusterTopologyBinding.KIND)],
    Path.AUTHORIZE: [
        _namespaced_rule("", ["v1"], ["secrets", "serviceaccounts", "services"], *_CHANGES),
        _namespaced_rule("", ["v1"], ["pods"], "UPDATE"),
        _namespaced_rule("rbac.authorization.k8s.io", ["v1"], ["roles", "rolebindings"], *_CHANGES),
        _namespaced_rule("autoscaling", ["v1", "v2"], ["horizontalpodautoscalers"], *_CHANGES),
        _grove_rule(_ALL, PodClique.KIND, PodCliqueScalingGroup.KIND),
        _grove_rule(_ALL, PodGang.KIND),
    ],
    Path.DEFAULT_GRAPH: [_GRAPHS],
    Path.VALIDATE_GRAPH: [_GRAPHS],
}

# A deletion gets warnings only: it neither waits for an operator that is not running, nor fails without it.
_TOPOLOGY_DELETION: Body = {
    "name": "clustertopology.deletion.webhooks.grove.io",
    "failurePolicy": "Ignore",
    "timeoutSeconds": 2,
    "rules": [_grove_rule(("DELETE",), ClusterTopology.KIND, ClusterTopologyBinding.KIND)],
}
