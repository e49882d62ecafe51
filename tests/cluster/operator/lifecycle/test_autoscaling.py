"""HorizontalPodAutoscalers: those that the operator creates for cliques and groups, and those that users
create, scale by metrics that the test serves."""

from __future__ import annotations

from typing import Any

import pytest

from grove.kube.client.resource import HORIZONTAL_POD_AUTOSCALERS as AUTOSCALERS
from grove.kube.client.resource import PODS
from tests.cluster.operator.support.harness import World, operating
from tests.cluster.operator.support.metrics_api import Metrics
from tests.cluster.operator.support.objects import CLIQUES, GROUPS, SETS
from tests.cluster.operator.support.workloads import Body, clique, group, workload

ROUTER, MODEL = "auto-0-router", "auto-0-model"
LONG = 120.0
"""Seconds: the autoscaler finds new kinds by discovery, which it repeats every half a minute."""


@pytest.fixture
async def watched(world: World) -> World:
    await world.watch(AUTOSCALERS)
    return world


def metric(name: str, each: Any = 10) -> Body:
    target = {"type": "AverageValue", "averageValue": each}
    return {"type": "External", "external": {"metric": {"name": name}, "target": target}}


def autoscaled() -> Body:
    """A clique of 1 to 4 and a group of 1 to 3, each scaled by a queue: one replica for 10 requests."""
    router, model = clique("router", 1), group("model", 2, 1, "leader", "worker")
    router["spec"]["autoScalingConfig"] = {
        "minReplicas": 1, "maxReplicas": 4, "metrics": [metric("router-queue", "1e1")]
    }  # fmt: skip
    model["scaleConfig"] = {"minReplicas": 1, "maxReplicas": 3, "metrics": [metric("model-queue")]}
    return workload("auto", router, clique("leader"), clique("worker"), groups=(model,))


def plain(routers: int = 1) -> Body:
    """A set without autoscaling configuration; `minAvailable` of the routers is their count."""
    parts = (clique("router", routers, routers), clique("leader"))
    return workload("auto", *parts, groups=(group("model", 2, 1, "leader"),))


def autoscaler(kind: str, target: str, queue: str, least: int = 0, most: int = 4) -> Body:
    """An autoscaler as a user or KEDA creates it."""
    reference = {"apiVersion": "grove.io/v1alpha1", "kind": kind, "name": target}
    spec = {
        "scaleTargetRef": reference,
        "minReplicas": least,
        "maxReplicas": most,
        "metrics": [metric(queue)],
    }
    return {"metadata": {"name": f"mine-{target}"}, "spec": spec}


def counts(world: World) -> tuple[int, ...]:
    """The replicas of the clique of routers and of the group of models."""
    found = (world.find(CLIQUES, ROUTER), world.find(GROUPS, MODEL))
    return tuple(part.spec["replicas"] for part in found if part)


async def until_counts(world: World, router: int, model: int, seconds: float = LONG) -> None:
    what = f"{router} routers and {model} models"
    await world.until(lambda: counts(world) == (router, model) and world.all_ready(), what, seconds)
    assert len(world.pods()) == router + 2 * model


@pytest.mark.proves("autoscaling", scheduler="any")
async def test_autoscaler_scales_clique_and_group_out_and_in(watched: World, metrics: Metrics) -> None:
    metrics |= {"router-queue": 10, "model-queue": 20}
    async with operating(watched):
        await watched.create(SETS, autoscaled())
        await watched.until_ready()
        assert watched.names(AUTOSCALERS) == [MODEL, ROUTER]
        metrics |= {"router-queue": 40, "model-queue": 30}
        await until_counts(watched, 4, 3)
        metrics |= {"router-queue": 20, "model-queue": 1}
        await until_counts(watched, 2, 1)


async def test_autoscaled_counts_survive_operator_restart(watched: World, metrics: Metrics) -> None:
    metrics |= {"router-queue": 30, "model-queue": 30}
    async with operating(watched):
        await watched.create(SETS, autoscaled())
        await until_counts(watched, 3, 3)

    metrics["router-queue"] = 40  # while no operator runs
    await watched.until(lambda: counts(watched) == (4, 3), "scaled by the autoscaler")
    assert len(watched.pods()) == 3 + 2 * 3
    async with operating(watched) as operator:
        await until_counts(watched, 4, 3)
        await watched.patch(SETS, "auto", {"metadata": {"labels": {"team": "blue"}}})
        await operator.recorder.until_quiet()
        assert counts(watched) == (4, 3)


async def test_autoscaler_status_updates_cause_no_calls(watched: World, metrics: Metrics) -> None:
    """The autoscaler keeps writing its status, and the API server stores `1e1` as `10`: both are ignored."""
    metrics |= {"router-queue": 10, "model-queue": 20}
    async with operating(watched) as operator:
        await watched.create(SETS, autoscaled())
        await watched.until_ready()
        await operator.recorder.until_quiet()
        quiet = len(operator.recorder.calls)
        for load in (10.1, 10.2, 10.3):  # within the tolerance: in the status, and without scaling
            metrics["router-queue"] = load
            await watched.until(lambda load=load: _measured(watched, ROUTER) == load)
        await operator.recorder.until_quiet()
        assert operator.recorder.calls[quiet:] == []
        assert _stored_target(watched, ROUTER) == "10"


def _measured(world: World, name: str) -> float:
    """The average value of the metric in the autoscaler's status."""
    current = world.get(AUTOSCALERS, name).status.get("currentMetrics") or [{}]
    value = current[0].get("external", {}).get("current", {}).get("averageValue", "0")
    return float(value.removesuffix("m")) / (1000 if value.endswith("m") else 1)


def _stored_target(world: World, name: str) -> str:
    return str(world.get(AUTOSCALERS, name).spec["metrics"][0]["external"]["target"]["averageValue"])


async def test_edited_or_deleted_autoscaler_is_restored(watched: World, metrics: Metrics) -> None:
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


async def test_autoscaler_deleted_with_config_replica_and_set(watched: World, metrics: Metrics) -> None:
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


async def test_contradictory_bounds_are_reported_on_set(watched: World) -> None:
    """Admission refuses them; without it the API server refuses the autoscaler, and the pods run."""
    body = workload("auto", clique("router"))
    body["spec"]["template"]["cliques"][0]["spec"]["autoScalingConfig"] = {"minReplicas": 3, "maxReplicas": 2}

    def reported() -> bool:
        errors = watched.get(SETS, "auto").status.get("lastErrors") or ()
        return any("spec.maxReplicas" in error["description"] for error in errors)

    async with operating(watched):
        await watched.create(SETS, body)
        await watched.until(lambda: reported() and watched.pods())
        assert not watched.all(AUTOSCALERS)


@pytest.mark.proves("autoscaling", scheduler="any")
async def test_user_autoscaler_scales_clique_and_group(watched: World, metrics: Metrics) -> None:
    """It needs the selectors in the statuses; an autoscaler does not work without them."""
    metrics |= {"router": 30, "model": 10}
    async with operating(watched):
        await watched.create(SETS, plain())
        await watched.until_ready()
        await watched.create(AUTOSCALERS, autoscaler("PodClique", ROUTER, "router", least=1))
        await watched.create(AUTOSCALERS, autoscaler("PodCliqueScalingGroup", MODEL, "model", least=1))
        await watched.until(lambda: counts(watched) == (3, 1) and watched.all_ready(), "both scaled", LONG)
        assert len(watched.pods()) == 4


@pytest.mark.proves("autoscaling", scheduler="any")
async def test_user_autoscaler_scales_set(watched: World, metrics: Metrics) -> None:
    metrics["sets"] = 20
    async with operating(watched):
        await watched.create(SETS, plain())
        await watched.until_ready()
        await watched.create(AUTOSCALERS, autoscaler("PodCliqueSet", "auto", "sets", least=1))
        await watched.until(lambda: len(watched.pods()) == 6 and watched.all_ready(), "two replicas", LONG)
        metrics["sets"] = 1
        await watched.until(lambda: len(watched.all(PODS)) == 3 and watched.all_ready(), "one replica", LONG)
