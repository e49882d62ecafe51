"""GPUs by claims, counted by the templates of the claims."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from grove.dynamo.render import gpu_claims, podcliqueset
from grove.dynamo.render.command_line import has_flag
from grove.dynamo.render.engines import command_of
from tests.dynamo.builders import KNOWN, deployment, engine, graph, main_of
from tests.dynamo.reconcile.test_planner import planned, snapshot

TP = ["--tensor-parallel-size", "8"]


def claiming(args=TP, request="", gpus=0, **more):
    body = engine(args, gpus=gpus, **more)
    spec = body["podTemplate"]["spec"]
    claim = {"name": "mine", **({"request": request} if request else {})}
    spec["containers"][0].setdefault("resources", {})["claims"] = [claim]
    spec["resourceClaims"] = [{"name": "mine", "resourceClaimTemplateName": "gpus"}]
    return deployment(body)


def template(*requests):
    return {"gpus": {"devices": {"requests": list(requests)}}}


def exactly(name="gpu", kind="gpu.nvidia.com", **more):
    return {"name": name, "exactly": {"deviceClassName": kind, **more}}


def first(*counts):
    return {
        "name": "gpu",
        "firstAvailable": [
            {"name": f"n{n}", "deviceClassName": "gpu.nvidia.com", "count": n} for n in counts
        ],
    }


def spans(body, templates) -> bool:
    """Whether the engine is told of its nodes."""
    template = podcliqueset.workload(
        gpu_claims.with_claimed_gpus(graph(body), templates), podcliqueset.RenderSettings()
    )["spec"]["template"]
    return has_flag(command_of(main_of(template["cliques"][0])), "--nnodes")


@pytest.mark.parametrize(
    ("found", "is_told"),
    [
        (template(exactly(count=4)), True),
        (template(exactly(count=8)), False),  # the engine fits into one node
        (template(exactly()), True),
        (template(exactly(count=4), exactly("more", count=4)), False),
        (template(exactly(count=4), exactly("channel", "compute-domain-daemon.nvidia.com")), True),
        (template(exactly("channel", "compute-domain-daemon.nvidia.com")), False),  # no GPU at all
        (template(first(4, 4)), True),
        (template(), False),
    ],
)
def test_an_engine_is_told_of_its_nodes_by_the_gpus_that_it_claims(found, is_told):
    assert spans(claiming(), found) == is_told
    assert list(gpu_claims.problems(graph(claiming()), found)) == []


def test_one_request_of_a_claim_may_be_meant():
    found = template(exactly("a", count=8), exactly("b", count=4))
    assert not spans(claiming(), found)
    assert spans(claiming(request="b"), found)


def test_resources_count_before_claims():
    assert gpu_claims.template_names(graph(claiming(gpus=8))) == set()
    assert not spans(claiming(gpus=8), template(exactly(count=1)))


@pytest.mark.parametrize(
    ("found", "why"),
    [
        ({}, "ResourceClaimTemplate gpus does not exist: make it"),
        (template(exactly(allocationMode="All")), "does not say how many GPUs it asks for"),
        (template(first(4, 8)), "does not say how many GPUs it asks for"),
    ],
)
def test_gpus_that_cannot_be_counted_are_waited_for_and_told(found, why):
    known = replace(KNOWN, claim_templates=found)
    plan = planned(replace(snapshot(claiming()), context=known))
    assert plan.intents == ()
    assert why in plan.status_update.desired.conditions[0].message


def test_nobody_counts_where_nobody_has_to():
    for body in (claiming(nodes=1), claiming(command=["python3", "-m", "dynamo.sglang"])):
        assert gpu_claims.template_names(graph(body)) == set()
        assert planned(snapshot(body)).intents


def test_a_claim_that_is_there_already_is_not_counted():
    body = claiming()
    body["spec"]["components"][0]["podTemplate"]["spec"]["resourceClaims"] = [
        {"name": "mine", "resourceClaimName": "somebodys"}
    ]
    assert gpu_claims.template_names(graph(body)) == set()
    assert planned(snapshot(body)).intents
