"""Reviews of DynamoGraphDeployments: filled in, refused in words, looked up where caches know nothing."""

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


async def test_what_is_left_out_is_filled_in_by_a_patch():
    body = deployment(component())
    response = await respond(reviewer(), Path.DEFAULT_GRAPH, graph_review("CREATE", body))
    after = patched(body, response)
    assert after["spec"]["components"][0]["replicas"] == 1
    assert after["metadata"]["annotations"]["nvidia.com/workload-provider"] == "grove"
    again = await respond(reviewer(), Path.DEFAULT_GRAPH, graph_review("CREATE", after))
    assert "patch" not in again


async def test_what_does_not_fit_is_refused_before_the_schema_can_forget_it():
    response = await respond(reviewer(), Path.DEFAULT_GRAPH, graph_review("CREATE", manifest("superseded")))
    assert not response["allowed"]
    for field in ("spec.topologyConstraints:", "spec.topologyConstraints.enabled:", "spec.services:"):
        assert field in response["status"]["message"]


async def test_a_broken_rule_is_told():
    response = await respond(reviewer(), Path.VALIDATE_GRAPH, graph_review("CREATE", deployment()))
    assert response["status"]["message"].startswith("spec.components: Required value")


async def test_a_change_is_judged_by_what_is_stored():
    old, new = deployment(component()), deployment(component("Other"))
    response = await respond(reviewer(), Path.VALIDATE_GRAPH, graph_review("UPDATE", new, old))
    assert "cannot be added" in response["status"]["message"]


async def test_a_topology_that_no_cache_knows_is_asked_for():
    levels = [{"domain": domain, "key": f"example/{domain}"} for domain in ("zone", "block")]
    topology = {"metadata": {"name": "dc"}, "spec": {"levels": levels}}

    def reply(request):
        if "clustertopologies/dc" in request.path:
            return Response(200, {}, msgspec.json.encode(topology))
        return refused(404, "NotFound")

    asked = StubTransport(reply, lambda _: 0.0)
    response = await respond(
        reviewer(FACTS, asked), Path.VALIDATE_GRAPH, graph_review("CREATE", manifest("both"))
    )
    assert response["allowed"], json.dumps(response)


async def test_without_the_switch_there_is_nothing_to_ask():
    assert not {Path.DEFAULT_GRAPH, Path.VALIDATE_GRAPH} & set(reviewer(dynamo=False).paths)


async def test_one_that_was_stored_under_other_rules_can_still_be_annotated():
    old = deployment(component(unheard=True))
    new = deployment(component(unheard=True), annotations={"a": "b"})
    for path in (Path.DEFAULT_GRAPH, Path.VALIDATE_GRAPH):
        assert (await respond(reviewer(), path, graph_review("UPDATE", new, old)))["allowed"]
        worse = deployment(component(unheard=True, more=1))
        assert not (await respond(reviewer(), path, graph_review("UPDATE", worse, old)))["allowed"]


async def test_a_count_that_an_adapter_decides_is_for_us_and_planners_to_change():
    old = deployment(component(replicas=2, scalingAdapter={}))
    new = deployment(component(replicas=3, scalingAdapter={}))
    planner = "system:serviceaccount:ns:planner-serviceaccount"
    asked = reviewer(replace(FACTS, operator_user=OPERATOR))
    for user, allowed in (("jane", False), (OPERATOR, True), (planner, True)):
        change = review("UPDATE", new, old, resource=GRAPH, userInfo={"username": user})
        assert (await respond(asked, Path.VALIDATE_GRAPH, change))["allowed"] == allowed


async def test_a_count_that_is_left_out_stays_what_an_adapter_made_it():
    old = deployment(component(replicas=5, scalingAdapter={}, minAvailable=1))
    new = deployment(component(scalingAdapter={}, minAvailable=1))
    response = await respond(reviewer(), Path.DEFAULT_GRAPH, graph_review("UPDATE", new, old))
    assert patched(new, response)["spec"]["components"][0]["replicas"] == 5
