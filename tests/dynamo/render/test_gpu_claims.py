"""GPUs of resource claims, counted from the templates of the claims."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from grove.dynamo.render import gpu_claims, podcliqueset
from grove.dynamo.render.command_line import has_flag
from grove.dynamo.render.engines import command_of
from tests.dynamo.builders import KNOWN, deployment, engine, graph, main_of
from tests.dynamo.reconcile.test_planner import planned, snapshot, status_of

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
    """Whether the engine gets multi-node flags."""
    template = podcliqueset.workload(
        gpu_claims.with_claimed_gpus(graph(body), templates), podcliqueset.RenderSettings()
    )["spec"]["template"]
    return has_flag(command_of(main_of(template["cliques"][0])), "--nnodes")


@pytest.mark.parametrize(
    ("found", "multinode"),
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
def test_claimed_gpus_decide_multinode_flags(found, multinode):
    assert spans(claiming(), found) == multinode
    assert list(gpu_claims.problems(graph(claiming()), found)) == []


def test_claim_may_use_one_request_of_template():
    found = template(exactly("a", count=8), exactly("b", count=4))
    assert not spans(claiming(), found)
    assert spans(claiming(request="b"), found)


def test_resource_limits_precede_claims():
    assert gpu_claims.template_names(graph(claiming(gpus=8))) == set()
    assert not spans(claiming(gpus=8), template(exactly(count=1)))


@pytest.mark.parametrize(
    ("found", "why"),
    [
        ({}, "ResourceClaimTemplate gpus does not exist: create it"),
        (template(exactly(allocationMode="All")), "does not request a fixed number of GPUs"),
        (template(first(4, 8)), "does not request a fixed number of GPUs"),
    ],
)
def test_uncountable_gpus_are_reported(found, why):
    known = replace(KNOWN, claim_templates=found)
    plan = planned(replace(snapshot(claiming()), context=known))
    assert plan.intents == ()
    assert why in status_of(plan).conditions[0].message


def test_templates_are_read_only_if_needed():
    for body in (claiming(nodes=1), claiming(command=["python3", "-m", "dynamo.sglang"])):
        assert gpu_claims.template_names(graph(body)) == set()
        assert planned(snapshot(body)).intents


def test_existing_claim_is_not_counted():
    body = claiming()
    body["spec"]["components"][0]["podTemplate"]["spec"]["resourceClaims"] = [
        {"name": "mine", "resourceClaimName": "somebodys"}
    ]
    assert gpu_claims.template_names(graph(body)) == set()
    assert planned(snapshot(body)).intents
