"""Explanations by the solver of random clusters that two tenants share: neither reads a name of the other."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from grove.cluster_state.model import ClusterState
from grove.dashboard.pages.explanation import explanation_page
from grove.dashboard.pages.model import ExplanationPage
from grove.dashboard.rights import Rights
from grove.explanation.reading import SETS
from grove.kube.client.resource import NODES, PODS
from tests.cluster_state.states import shaped, with_objects
from tests.dashboard.pages.boards import StateBoard
from tests.dashboard.pages.clusters import a_pod
from tests.dashboard.pages.test_explanation import a_gpu_set
from tests.fuzzing import budget

EMPTY = shaped("1x1x2x2", 8, "local")
BODIES = [msgspec.json.decode(each) for each in EMPTY.kind(NODES).items]
STATES = st.sampled_from(("", "cordoned", "tainted", "not ready"))
NAMESPACES = st.sampled_from(("mine", "secret-ns"))


def a_node(body: dict[str, Any], state: str) -> dict[str, Any]:
    ready = [{"type": "Ready", "status": "False" if state == "not ready" else "True"}]
    taints = [{"key": "some-key", "effect": "NoSchedule"}] if state == "tainted" else []
    spec = {"unschedulable": state == "cordoned", "taints": taints}
    return {**body, "spec": spec, "status": {**body["status"], "conditions": ready}}


@st.composite
def clusters(draw: st.DrawFn) -> ClusterState:
    """Four nodes in two racks, with pods of both namespaces, and sets of both that may find no place."""
    nodes = [a_node(body, draw(STATES)) for body in BODIES]
    state = replace(EMPTY, kinds={**EMPTY.kinds, NODES: replace(EMPTY.kind(NODES), items=())})
    state = with_objects(state, NODES, *nodes)
    for number, node in enumerate(BODIES):
        namespace, gpus = draw(NAMESPACES), draw(st.sampled_from((0, 4, 8)))
        prefix = "secret-" if namespace == "secret-ns" else ""
        if gpus:
            pod = a_pod(namespace, f"{prefix}pod-{number}", node["metadata"]["name"], gpus)
            pod["spec"]["priority"] = draw(st.sampled_from((-10, 0, 10)))
            state = with_objects(state, PODS, pod)
    sizes = st.integers(1, 5)
    sets = a_gpu_set("demo", "mine", draw(sizes)), a_gpu_set("secret-set", "secret-ns", draw(sizes))
    return with_objects(state, SETS, *sets)


async def explained(state: ClusterState, rights: Rights) -> ExplanationPage:
    return await explanation_page(StateBoard(state), rights, "mine", "set/demo")


@budget(25)
@given(clusters(), st.booleans())
def test_explanation_for_one_tenant_names_nothing_of_another(state, nodes):
    page = asyncio.run(explained(state, Rights(frozenset({"mine"}), nodes=nodes)))
    text = msgspec.json.encode(page).decode()
    assert page.explanation.waits
    assert "secret" not in text
    assert nodes or not any(body["metadata"]["name"] in text for body in BODIES)
    assert nodes or "some-key" not in text
