"""Builds admission reviews as API servers send them, and gets the responses without a cluster."""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Mapping
from typing import Any

import msgspec

from grove.dynamo.context import GraphContext
from grove.kube.client.client import Client
from grove.operator.caches.registry import Caches
from grove.rules.model import Facts
from grove.webhooks.cluster_facts import ClusterFacts
from grove.webhooks.dynamo_facts import GraphClusterFacts
from grove.webhooks.reviewer import Reviewer
from tests.kube.executor.stub_transport import StubTransport, refused
from tests.rules.builders import in_use

Body = dict[str, Any]

SET = {"group": "grove.io", "version": "v1alpha1", "resource": "podcliquesets"}
TOPOLOGY = {"group": "grove.io", "version": "v1alpha1", "resource": "clustertopologies"}
GRAPH = {"group": "nvidia.com", "version": "v1beta1", "resource": "dynamographdeployments"}
UID = "705ab4f5-6393-11e8-b7cc-42010a800002"
OPERATOR = "system:serviceaccount:grove-system:grove-operator"


def workload(**template: Any) -> Body:
    pod = {"containers": [{"name": "c", "image": "model:1"}]}
    clique = {"name": "worker", "spec": {"replicas": 2, "podSpec": pod}}
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {"name": "app", "namespace": "ns"},
        "spec": {"replicas": 1, "template": {"cliques": [clique], **template}},
    }


def review(
    operation: str, new: Any = None, old: Any = None, resource: Mapping[str, str] = SET, **request: Any
) -> Body:
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": UID,
            "kind": {"group": "grove.io", "version": "v1alpha1", "kind": "PodCliqueSet"},
            "resource": resource,
            "operation": operation,
            "name": "app",
            "namespace": "ns",
            "userInfo": {"username": "jane", "groups": ["system:authenticated"]},
            "object": new,
            "oldObject": old,
            "dryRun": False,
            **request,
        },
    }


def reviewer(
    facts: Facts | None = None,
    replies: StubTransport | None = None,
    *,
    authorizer: bool = True,
    dynamo: bool = True,
    inference_pools: bool = True,
) -> Reviewer:
    """A reviewer with empty caches; by default the API server has no objects either."""
    client = Client(replies or StubTransport(lambda _: refused(404, "NotFound"), lambda _: 0.0))
    caches = Caches()
    cluster_facts = ClusterFacts(
        caches, client, facts or Facts(operator_user=OPERATOR, backends=in_use("kai-scheduler"))
    )
    around = GraphContext(topology_aware=True, scheduler="kai-scheduler")
    graphs = (
        GraphClusterFacts(caches, cluster_facts, around, inference_pools=lambda: inference_pools)
        if dynamo
        else None
    )
    return Reviewer(cluster_facts, authorizer=authorizer, graphs=graphs)


async def respond(by: Reviewer, path: str, body: Any) -> Body:
    """The response, whose form is checked."""
    sent = body if isinstance(body, bytes) else msgspec.json.encode(body)
    answer = json.loads(await by.answer(path, sent))
    assert (answer["apiVersion"], answer["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    response: Body = answer["response"]
    assert isinstance(response["uid"], str)
    assert response["status"]["code"] == 200 if response["allowed"] else response["status"]["message"]
    return response


def patched(body: Body, response: Body) -> Body:
    """The object after the patch of a response, as an API server applies it."""
    body = copy.deepcopy(body)
    for operation in json.loads(base64.b64decode(response.get("patch", "W10="))):
        apply(body, operation)
    return body


def apply(document: Any, operation: Body) -> None:
    """Apply one operation of RFC 6902, of those in use; fails if the path does not exist."""
    *parents, last = [part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]]
    for part in parents:
        document = document[int(part)] if isinstance(document, list) else document[part]
    key = int(last) if isinstance(document, list) else last
    if operation["op"] == "remove":
        del document[key]
    elif operation["op"] == "replace":
        assert key in (range(len(document)) if isinstance(document, list) else document)
        document[key] = operation["value"]
    else:
        assert operation["op"] == "add"
        assert isinstance(document, dict)
        document[key] = operation["value"]
