"""Reviews of DynamoGraphDeployments: defaults, denials, and lookups of what is not in the caches."""

from __future__ import annotations

import json

import msgspec
from msgspec.structs import replace

from grove.kube.client.transport import Response
from grove.webhooks.registrations import Path
from tests.dynamo.builders import FACTS, component, deployment, manifest
from tests.kube.executor.stub_transport import StubTransport, refused
from tests.webhooks.reviews import GRAPH, OPERATOR, patched, respond, review, reviewer


def graph_review(operation, new, old=None):
    return review(operation, new, old, resource=GRAPH)


async def test_graph_defaults_are_patched():
    body = deployment(component())
    response = await respond(reviewer(), Path.DEFAULT_GRAPH, graph_review("CREATE", body))
    after = patched(body, response)
    assert after["spec"]["components"][0]["replicas"] == 1
    assert after["metadata"]["annotations"]["nvidia.com/workload-provider"] == "grove"
    again = await respond(reviewer(), Path.DEFAULT_GRAPH, graph_review("CREATE", after))
    assert "patch" not in again


async def test_undecodable_graph_is_denied_before_schema_prunes():
    response = await respond(reviewer(), Path.DEFAULT_GRAPH, graph_review("CREATE", manifest("superseded")))
    assert not response["allowed"]
    for field in ("spec.topologyConstraints:", "spec.topologyConstraints.enabled:", "spec.services:"):
        assert field in response["status"]["message"]


async def test_invalid_graph_is_denied_with_field():
    response = await respond(reviewer(), Path.VALIDATE_GRAPH, graph_review("CREATE", deployment()))
    assert response["status"]["message"].startswith("spec.components: Required value")


async def test_graph_update_is_validated_against_stored():
    old, new = deployment(component()), deployment(component("Other"))
    response = await respond(reviewer(), Path.VALIDATE_GRAPH, graph_review("UPDATE", new, old))
    assert "cannot be added" in response["status"]["message"]


async def test_endpoint_picker_is_denied_without_pools():
    body = deployment(component("Epp", "epp", eppConfig={"config": {}}))
    for served in (True, False):
        by = reviewer(inference_pools=served)
        response = await respond(by, Path.VALIDATE_GRAPH, graph_review("CREATE", body))
        assert response["allowed"] is served
    assert "the cluster does not serve inference.networking.k8s.io/v1" in response["status"]["message"]


async def test_topology_missing_in_cache_is_read_for_graph():
    levels = [{"domain": domain, "key": f"example/{domain}"} for domain in ("zone", "block")]
    topology = {"metadata": {"name": "dc"}, "spec": {"levels": levels}}

    def reply(request):
        if "clustertopologies/dc" in request.path:
            return Response(200, {}, msgspec.json.encode(topology))
        return refused(404, "NotFound")

    transport = StubTransport(reply, lambda _: 0.0)
    response = await respond(
        reviewer(FACTS, transport), Path.VALIDATE_GRAPH, graph_review("CREATE", manifest("both"))
    )
    assert response["allowed"], json.dumps(response)


async def test_dynamo_disabled_serves_no_graph_paths():
    assert not {Path.DEFAULT_GRAPH, Path.VALIDATE_GRAPH} & set(reviewer(dynamo=False).paths)


async def test_stored_invalid_graph_can_be_annotated():
    old = deployment(component(unknown=True))
    new = deployment(component(unknown=True), annotations={"a": "b"})
    for path in (Path.DEFAULT_GRAPH, Path.VALIDATE_GRAPH):
        assert (await respond(reviewer(), path, graph_review("UPDATE", new, old)))["allowed"]
        worse = deployment(component(unknown=True, more=1))
        assert not (await respond(reviewer(), path, graph_review("UPDATE", worse, old)))["allowed"]


async def test_adapter_replicas_change_only_by_operator_or_planner():
    old = deployment(component(replicas=2, scalingAdapter={}))
    new = deployment(component(replicas=3, scalingAdapter={}))
    planner = "system:serviceaccount:ns:planner-serviceaccount"
    by = reviewer(replace(FACTS, operator_user=OPERATOR))
    for user, allowed in (("jane", False), (OPERATOR, True), (planner, True)):
        change = review("UPDATE", new, old, resource=GRAPH, userInfo={"username": user})
        assert (await respond(by, Path.VALIDATE_GRAPH, change))["allowed"] == allowed


async def test_omitted_replicas_keep_value_of_adapter():
    old = deployment(component(replicas=5, scalingAdapter={}, minAvailable=1))
    new = deployment(component(scalingAdapter={}, minAvailable=1))
    response = await respond(reviewer(), Path.DEFAULT_GRAPH, graph_review("UPDATE", new, old))
    assert patched(new, response)["spec"]["components"][0]["replicas"] == 5
