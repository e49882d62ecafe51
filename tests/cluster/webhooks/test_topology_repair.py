"""Sets from before topology names existed: their condition says what to add, and admission accepts that."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from grove.api.conditions import ConditionType, TopologyLevelsReason
from grove.kube.auth import config
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.errors import ApiError
from grove.local.cluster.lifecycle import LocalCluster
from tests.cluster.operator.support.harness import World, operating, watching
from tests.cluster.operator.support.objects import SETS
from tests.cluster.webhooks.harness import TOPOLOGIES, Body, admitting, topology
from tests.rules.builders import FACTS, changed, workload
from tests.rules.messages import ON_KAI
from tests.rules.podcliqueset.test_topology_constraints import REPAIRS

pytestmark = pytest.mark.cluster

SWITCHES = {
    "topologyAwareScheduling": {"enabled": True},
    "scheduler": {"profiles": [{"name": "kai-scheduler"}]},
}


async def test_topology_name_is_added_to_a_stored_set(
    cluster: LocalCluster, crds: object, client: Client, namespace: str
) -> None:
    connection = config.load(cluster.kubeconfig)
    for name, domains in FACTS.topologies.items():
        await client.create(TOPOLOGIES, topology(name, *domains), as_type=Object)
    try:
        async with watching(client, connection, namespace) as world, operating(world, topology_aware=True):
            for number, (stored, _, _) in enumerate(REPAIRS):
                await world.create(SETS, _set(number, stored))
            await world.until(lambda: _condition(world, 0)[0] == "Unknown", "the condition")
            assert "add spec.template.topologyConstraint.topologyName" in _condition(world, 0)[2]
            async with admitting(client, connection, namespace, **SWITCHES):
                for number, (_, changes, errors) in enumerate(REPAIRS):
                    await _change(client, namespace, number, changes, errors)
            await world.until(
                lambda: _condition(world, 0)[:2] == ("False", TopologyLevelsReason.ALL_AVAILABLE),
                "the levels of the named topology",
            )
    finally:
        for name in FACTS.topologies:
            await client.delete(TOPOLOGIES, name, as_type=Object)


def _set(number: int, changes: Body) -> Body:
    body = changed(workload(), {**ON_KAI, **changes})
    return {**body, "metadata": {**body["metadata"], "name": f"old-{number}", "namespace": ""}}


async def _change(client: Client, namespace: str, number: int, changes: Body, errors: list[str]) -> None:
    before: Body = await client.get(SETS, f"old-{number}", namespace=namespace, as_type=dict)
    refused = pytest.raises(ApiError) if errors else nullcontext()
    with refused as refusal:
        await client.replace(
            SETS, f"old-{number}", changed(before, changes), namespace=namespace, as_type=Object
        )
    if refusal is not None:
        assert all(error in refusal.value.status.message for error in errors)


def _condition(world: World, number: int) -> tuple[str, str, str]:
    found = world.get(SETS, f"old-{number}").status.get("conditions", ())
    return next(
        (
            (each["status"], each["reason"], each["message"])
            for each in found
            if each["type"] == ConditionType.TOPOLOGY_LEVELS_UNAVAILABLE
        ),
        ("", "", ""),
    )
