"""Worker generations: workers of old and new templates have different Dynamo namespaces."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from grove.dynamo.worker_generation import generation
from tests.dynamo.builders import cliques, component, deployment, engine, env_of, graph, with_stored
from tests.dynamo.reconcile.test_planner import ALL, clique, done, planned, snapshot, status_of

HASH, SUFFIX = "nvidia.com/dynamo-worker-hash", "DYN_NAMESPACE_WORKER_SUFFIX"


def app(main=None, web=None, **worker):
    return deployment(component("Web", "frontend", main=web), component(main=main, **worker))


def test_only_workers_carry_the_generation():
    found = cliques(deployment(component("Web", "frontend"), component("P", "prefill"), engine([])))
    carried = {name: each["labels"].get(HASH) for name, each in found.items()}
    assert carried.pop("web") is None
    (value,) = set(carried.values())
    assert len(value) == 8
    assert {env_of(found[name])[SUFFIX] for name in carried} == {value}
    assert SUFFIX not in env_of(found["web"])


@pytest.mark.parametrize(
    "other",
    [
        app(main={"image": "dynamo:2.0.0"}),
        app(main={"args": ["--more"]}),
        app(sharedMemorySize="1Gi"),
        {**app(), "spec": {**app()["spec"], "env": [{"name": "A", "value": "1"}]}},
    ],
)
def test_changed_workers_have_another_generation(other):
    assert generation(graph(app())) != generation(graph(other))


@pytest.mark.parametrize(
    "same",
    [
        app(replicas=5),
        app(scalingAdapter={}),
        app(web={"image": "dynamo:2.0.0"}),
        app(topologyConstraint={"packDomain": "rack"}),
        app(modelRef={"name": "m"}),
        deployment(*reversed(app()["spec"]["components"])),
    ],
)
def test_change_of_other_component_keeps_generation(same):
    assert generation(graph(app())) == generation(graph(same))


def test_status_has_runtime_namespace_of_workers():
    found = replace(done(snapshot(app(replicas=2))), cliques={"app-0-worker": clique(2, **ALL)})
    namespace = status_of(planned(found)).components["Worker"].runtime_namespace
    assert namespace == f"ns-app-{generation(graph(app()))}"


def test_old_set_gets_generation_at_next_change(monkeypatch):
    with monkeypatch.context() as before:
        before.setattr("grove.dynamo.render.containers.generation", lambda _: "")
        before.setattr("grove.dynamo.render.pod_template.generation", lambda _: "")
        existing = done(snapshot(app()))
    assert planned(existing).intents == ()
    changed = with_stored(existing, snapshot(app(main={"image": "dynamo:2.0.0"})).stored)
    (patch,) = planned(changed).intents
    worker = patch.body["spec"]["template"]["cliques"][1]
    assert worker["labels"][HASH] == generation(graph(app(main={"image": "dynamo:2.0.0"})))
    assert planned(done(changed)).intents == ()
