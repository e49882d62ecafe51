"""Kubernetes' own autoscaler scales cliques, groups and sets, by metrics that the test serves."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from grove.kube.client.client import Client
from grove.kube.client.resource import HORIZONTAL_POD_AUTOSCALERS as AUTOSCALERS
from grove.kube.client.resource import PODS
from tests.cluster.operator.support.harness import World, operating
from tests.cluster.operator.support.metrics_api import Metrics, serving_metrics
from tests.cluster.operator.support.objects import CLIQUES, GROUPS, SETS
from tests.cluster.operator.support.workloads import Body, clique, group, workload

ROUTER, MODEL = "auto-0-router", "auto-0-model"
LONG = 120.0
"""The autoscaler learns of new kinds by discovery, which it repeats every half a minute."""


@pytest.fixture
async def metrics(client: Client) -> AsyncIterator[Metrics]:
    async with serving_metrics(client) as served:
        yield served


@pytest.fixture
async def watched(world: World) -> World:
    await world.watch(AUTOSCALERS)
    return world


def metric(name: str, each: Any = 10) -> Body:
    target = {"type": "AverageValue", "averageValue": each}
    return {"type": "External", "external": {"metric": {"name": name}, "target": target}}


def autoscaled() -> Body:
    """A clique of 1 to 4 and a group of 1 to 3, each by a queue of its own: 10 requests keep one busy."""
    router, model = clique("router", 1), group("model", 2, 1, "leader", "worker")
    router["spec"]["autoScalingConfig"] = {
        "minReplicas": 1, "maxReplicas": 4, "metrics": [metric("router-queue", "1e1")]
    }  # fmt: skip
    model["scaleConfig"] = {"minReplicas": 1, "maxReplicas": 3, "metrics": [metric("model-queue")]}
    return workload("auto", router, clique("leader"), clique("worker"), groups=(model,))


def plain(routers: int = 1) -> Body:
    """Without autoscaling of our own; all routers are needed."""
    parts = (clique("router", routers, routers), clique("leader"))
    return workload("auto", *parts, groups=(group("model", 2, 1, "leader"),))


def autoscaler(kind: str, target: str, queue: str, least: int = 0, most: int = 4) -> Body:
    """What a user makes, or KEDA."""
    reference = {"apiVersion": "grove.io/v1alpha1", "kind": kind, "name": target}
    spec = {
        "scaleTargetRef": reference,
        "minReplicas": least,
        "maxReplicas": most,
        "metrics": [metric(queue)],
    }
    return {"metadata": {"name": f"mine-{target}"}, "spec": spec}


def counts(world: World) -> tuple[int, ...]:
    """Of the routers and of the models."""
    found = (world.find(CLIQUES, ROUTER), world.find(GROUPS, MODEL))
    return tuple(part.spec["replicas"] for part in found if part)


async def until_counts(world: World, router: int, model: int, seconds: float = LONG) -> None:
    what = f"{router} routers and {model} models"
    await world.until(lambda: counts(world) == (router, model) and world.whole(), what, seconds)
    assert len(world.pods()) == router + 2 * model


async def test_it_scales_a_clique_and_a_group_out_and_in(watched: World, metrics: Metrics) -> None:
    metrics |= {"router-queue": 10, "model-queue": 20}
    async with operating(watched):
        await watched.create(SETS, autoscaled())
        await watched.until_ready()
        assert watched.names(AUTOSCALERS) == [MODEL, ROUTER]
        metrics |= {"router-queue": 40, "model-queue": 30}
        await until_counts(watched, 4, 3)
        metrics |= {"router-queue": 20, "model-queue": 1}
        await until_counts(watched, 2, 1)


async def test_its_counts_survive_operators_that_come_and_go(watched: World, metrics: Metrics) -> None:
    metrics |= {"router-queue": 30, "model-queue": 30}
    async with operating(watched):
        await watched.create(SETS, autoscaled())
        await until_counts(watched, 3, 3)

    metrics["router-queue"] = 40  # while nobody is there
    await watched.until(lambda: counts(watched) == (4, 3), "the autoscaler at work alone")
    assert len(watched.pods()) == 3 + 2 * 3
    async with operating(watched) as operator:
        await until_counts(watched, 4, 3)
        await watched.patch(SETS, "auto", {"metadata": {"labels": {"team": "blue"}}})
        await operator.recorder.silence()
        assert counts(watched) == (4, 3)


async def test_at_work_it_costs_the_operator_nothing(watched: World, metrics: Metrics) -> None:
    """It tells what it measures all the time, and the server spells `1e1` its own way: neither is news."""
    metrics |= {"router-queue": 10, "model-queue": 20}
    async with operating(watched) as operator:
        await watched.create(SETS, autoscaled())
        await watched.until_ready()
        await operator.recorder.silence()
        quiet = len(operator.recorder.calls)
        for load in (10.1, 10.2, 10.3):  # too little to act on, and told
            metrics["router-queue"] = load
            await watched.until(lambda load=load: _measured(watched, ROUTER) == load)
        await operator.recorder.silence()
        assert operator.recorder.calls[quiet:] == []
        assert _stored_target(watched, ROUTER) == "10"


def _measured(world: World, name: str) -> float:
    """What each of them has to do, as the autoscaler tells it."""
    told = world.get(AUTOSCALERS, name).status.get("currentMetrics") or [{}]
    value = told[0].get("external", {}).get("current", {}).get("averageValue", "0")
    return float(value.removesuffix("m")) / (1000 if value.endswith("m") else 1)


def _stored_target(world: World, name: str) -> str:
    return str(world.get(AUTOSCALERS, name).spec["metrics"][0]["external"]["target"]["averageValue"])


async def test_one_that_was_edited_or_deleted_comes_back(watched: World, metrics: Metrics) -> None:
    metrics |= {"router-queue": 10, "model-queue": 20}
    async with operating(watched):
        await watched.create(SETS, autoscaled())
        await watched.until_ready()
        spec = watched.get(AUTOSCALERS, ROUTER).spec
        await watched.patch(AUTOSCALERS, ROUTER, {"spec": {"maxReplicas": 99, "metrics": None}})
        await watched.until(lambda: watched.get(AUTOSCALERS, ROUTER).spec == spec)

        stripped = watched.get(AUTOSCALERS, ROUTER)
        await watched.patch(AUTOSCALERS, ROUTER, {"metadata": {"labels": dict.fromkeys(stripped.labels)}})
        await watched.until(lambda: watched.get(AUTOSCALERS, ROUTER).labels == stripped.labels)
        assert watched.get(AUTOSCALERS, ROUTER).uid == stripped.uid

        old = watched.get(AUTOSCALERS, MODEL).uid
        await watched.delete(AUTOSCALERS, MODEL)
        await watched.until(lambda: (new := watched.find(AUTOSCALERS, MODEL)) and new.uid != old)


async def test_it_goes_with_its_configuration_its_replica_and_its_set(
    watched: World, metrics: Metrics
) -> None:
    metrics |= {"router-queue": 10, "model-queue": 20}
    async with operating(watched):
        await watched.create(SETS, {**autoscaled(), "spec": {**autoscaled()["spec"], "replicas": 2}})
        await watched.until_ready()
        assert len(watched.names(AUTOSCALERS)) == 4
        await watched.scale(SETS, "auto", 1)
        await watched.until(lambda: watched.names(AUTOSCALERS) == [MODEL, ROUTER])

        template = autoscaled()["spec"]["template"]
        del template["cliques"][0]["spec"]["autoScalingConfig"]
        await watched.patch(SETS, "auto", {"spec": {"template": {"cliques": template["cliques"]}}})
        await watched.until(lambda: watched.names(AUTOSCALERS) == [MODEL])

        await watched.delete(SETS, "auto")
        await watched.until(lambda: not watched.all(AUTOSCALERS), "no autoscaler", LONG)


async def test_bounds_that_contradict_each_other_are_told_on_the_set(watched: World) -> None:
    """Admission refuses them; without it the API server does, and the pods run all the same."""
    body = workload("auto", clique("router"))
    body["spec"]["template"]["cliques"][0]["spec"]["autoScalingConfig"] = {"minReplicas": 3, "maxReplicas": 2}

    def told() -> bool:
        errors = watched.get(SETS, "auto").status.get("lastErrors") or ()
        return any("spec.maxReplicas" in error["description"] for error in errors)

    async with operating(watched):
        await watched.create(SETS, body)
        await watched.until(lambda: told() and watched.pods())
        assert not watched.all(AUTOSCALERS)


async def test_users_scale_cliques_and_groups_with_autoscalers_of_their_own(
    watched: World, metrics: Metrics
) -> None:
    """They need the selectors in the status; without one the autoscaler refuses to look."""
    metrics |= {"router": 30, "model": 10}
    async with operating(watched):
        await watched.create(SETS, plain())
        await watched.until_ready()
        await watched.create(AUTOSCALERS, autoscaler("PodClique", ROUTER, "router", least=1))
        await watched.create(AUTOSCALERS, autoscaler("PodCliqueScalingGroup", MODEL, "model", least=1))
        await watched.until(lambda: counts(watched) == (3, 1) and watched.whole(), "both scaled", LONG)
        assert len(watched.pods()) == 4


async def test_users_scale_a_set_with_an_autoscaler_of_their_own(watched: World, metrics: Metrics) -> None:
    metrics["sets"] = 20
    async with operating(watched):
        await watched.create(SETS, plain())
        await watched.until_ready()
        await watched.create(AUTOSCALERS, autoscaler("PodCliqueSet", "auto", "sets", least=1))
        await watched.until(lambda: len(watched.pods()) == 6 and watched.whole(), "two replicas", LONG)
        metrics["sets"] = 1
        await watched.until(lambda: len(watched.all(PODS)) == 3 and watched.whole(), "one replica", LONG)


async def test_to_zero_and_back(watched: World, metrics: Metrics) -> None:
    """None, or as many as are needed to start: what lies between is refused at the door."""
    metrics |= {"router": 20, "model": 20}
    async with operating(watched):
        await watched.create(SETS, plain(routers=2))
        await watched.until_ready()
        await watched.create(AUTOSCALERS, autoscaler("PodClique", ROUTER, "router"))
        await watched.create(AUTOSCALERS, autoscaler("PodCliqueScalingGroup", MODEL, "model"))

        metrics["router"] = 10
        mine = f"mine-{ROUTER}"
        await watched.until(
            lambda: watched.get(AUTOSCALERS, mine).condition("AbleToScale") == "False", "a refusal", LONG
        )
        assert counts(watched)[0] == 2, "one alone could not start"

        metrics |= {"router": 0, "model": 0}
        await watched.until(lambda: counts(watched) == (0, 0) and not watched.all(PODS), "nobody", LONG)
        await watched.until_ready()
        metrics |= {"router": 20, "model": 30}
        await watched.until(lambda: counts(watched) == (2, 3) and watched.whole(), "all back", LONG)
        assert len(watched.pods()) == 5
