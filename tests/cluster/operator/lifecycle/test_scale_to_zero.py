"""Autoscalers that scale to zero and back: the count is 0 or at least `minAvailable`."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from grove.api.crds import crd
from grove.kube.auth import config
from grove.kube.client.client import Client
from grove.kube.client.resource import HORIZONTAL_POD_AUTOSCALERS as AUTOSCALERS
from grove.kube.client.resource import PODS
from tests.chart import operator_account_of
from tests.cluster.conftest import apply, established
from tests.cluster.operator.lifecycle.test_autoscaling import (
    LONG,
    MODEL,
    ROUTER,
    autoscaler,
    counts,
    metric,
    plain,
)
from tests.cluster.operator.support.harness import World, operating, watching
from tests.cluster.operator.support.metrics_api import Metrics
from tests.cluster.operator.support.objects import SETS
from tests.cluster.operator.support.workloads import Body, clique, group, workload
from tests.clusters import Clusters
from tests.namespaces import make_namespace


@pytest.fixture
async def watched(world: World) -> World:
    await world.watch(AUTOSCALERS)
    return world


def autoscaled_from_zero() -> Body:
    """Routers of which 2 are needed, and a group of which 1 is; both may be scaled to 0."""
    router, model = clique("router", 2, 2), group("model", 2, 1, "leader")
    router["spec"]["autoScalingConfig"] = {
        "minReplicas": 0, "maxReplicas": 4, "metrics": [metric("router-queue")]
    }  # fmt: skip
    model["scaleConfig"] = {"minReplicas": 0, "maxReplicas": 3, "metrics": [metric("model-queue")]}
    return workload("auto", router, clique("leader"), groups=(model,))


async def until_counts(world: World, router: int, model: int) -> None:
    what = f"{router} routers and {model} models"
    await world.until(lambda: counts(world) == (router, model) and world.all_ready(), what, LONG)
    await world.until(lambda: len(world.all(PODS)) == router + model, f"pods of {what}")


async def until_refused(world: World, name: str) -> None:
    """Waits until the condition of the autoscaler says that its count was refused, and why."""

    def refused() -> bool:
        conditions = world.get(AUTOSCALERS, name).status.get("conditions") or ()
        return any(
            each["type"] == "AbleToScale"
            and each["status"] == "False"
            and "replicas must be 0 or at least minAvailable" in each["message"]
            for each in conditions
        )

    await world.until(refused, "a refusal", LONG)


async def test_autoscalers_of_set_scale_to_zero_and_back(watched: World, metrics: Metrics) -> None:
    metrics |= {"router-queue": 20, "model-queue": 20}
    async with operating(watched):
        await watched.create(SETS, autoscaled_from_zero())
        await until_counts(watched, 2, 2)
        metrics |= {"router-queue": 0, "model-queue": 0}
        await until_counts(watched, 0, 0)
        scalers = {name: watched.get(AUTOSCALERS, name).uid for name in (ROUTER, MODEL)}

    async with operating(watched) as operator:  # which finds everything at 0
        await operator.recorder.until_quiet()
        assert counts(watched) == (0, 0)
        assert {name: watched.get(AUTOSCALERS, name).uid for name in scalers} == scalers
        metrics |= {"router-queue": 10, "model-queue": 10}
        await until_counts(watched, 0, 1)
        await until_refused(watched, ROUTER)
        metrics |= {"router-queue": 11}
        await until_counts(watched, 2, 1)


@pytest.mark.proves("scale-to-zero", scheduler="any")
async def test_user_autoscaler_scales_to_zero_and_back(watched: World, metrics: Metrics) -> None:
    """Counts between zero and `minAvailable` are refused by the API server."""
    metrics |= {"router": 20, "model": 20}
    async with operating(watched):
        await watched.create(SETS, plain(routers=2))
        await watched.until_ready()
        await watched.create(AUTOSCALERS, autoscaler("PodClique", ROUTER, "router"))
        await watched.create(AUTOSCALERS, autoscaler("PodCliqueScalingGroup", MODEL, "model"))

        metrics["router"] = 10
        mine = f"mine-{ROUTER}"
        await until_refused(watched, mine)
        assert counts(watched)[0] == 2, "below minAvailable"

        metrics |= {"router": 0, "model": 0}
        await watched.until(lambda: counts(watched) == (0, 0) and not watched.all(PODS), "no pods", LONG)
        await watched.until_ready()
        metrics |= {"router": 20, "model": 30}
        await watched.until(lambda: counts(watched) == (2, 3) and watched.all_ready(), "all pods", LONG)
        assert len(watched.pods()) == 5


@pytest.fixture
async def without_gate(clusters: Clusters) -> AsyncIterator[World]:
    """A namespace of a cluster whose autoscalers have a minimum of at least 1."""
    cluster = await clusters.start("gate", feature_gates={"HPAScaleToZero": False})
    async with Client(config.load(cluster.kubeconfig)) as client:
        for definition in crd.all_definitions():
            await apply(client, definition)
            await established(client, definition["metadata"]["name"])
        await make_namespace(client, "scaled")
        account = await operator_account_of(cluster)
        async with watching(client, account.config, "scaled") as world:
            await world.watch(AUTOSCALERS)
            yield world


async def test_minimum_of_zero_without_gate_is_reported(without_gate: World) -> None:
    """The pods run nevertheless."""
    body = workload("auto", clique("worker"))
    body["spec"]["template"]["cliques"][0]["spec"]["autoScalingConfig"] = {
        "minReplicas": 0, "maxReplicas": 2, "metrics": [metric("queue")]
    }  # fmt: skip

    def reported() -> bool:
        errors = without_gate.get(SETS, "auto").status.get("lastErrors") or ()
        return any(
            error["code"] == "ERR_SYNC_HPA" and "the feature gate HPAScaleToZero" in error["description"]
            for error in errors
        )

    async with operating(without_gate):
        await without_gate.create(SETS, body)
        await without_gate.until(lambda: reported() and without_gate.pods(), "an error and pods")
        assert not without_gate.all(AUTOSCALERS)
