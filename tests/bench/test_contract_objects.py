"""The objects of the contract floor are those that the operator creates for the same set."""

from __future__ import annotations

from typing import Any

import pytest
from bench.core import contract_objects as contract

from grove.api.naming import labels
from tests.plan.simulator.simulator import Simulator

NAMESPACE, PODS = "default", 2


@pytest.fixture(scope="module")
def created() -> Simulator:
    """A set of one replica, as the operator creates it."""
    body = contract.podcliqueset("floor-7", PODS)
    body["metadata"] |= {"namespace": NAMESPACE}
    simulator = Simulator(body)
    simulator.settle()
    return simulator


def of_contract(found: dict[str, Any]) -> dict[str, Any]:
    """Without what differs: owners, the template's hash, and what the API server adds."""
    metadata = found["metadata"]
    own = {key: value for key, value in metadata["labels"].items() if key != labels.TEMPLATE_HASH}
    return {**found, "metadata": {"name": metadata["name"], "labels": own}, "status": None}


def test_service_clique_and_gang_are_those_of_the_operator(created: Simulator) -> None:
    pods = sorted(pod["metadata"]["name"] for pod in created.api.objects("Pod"))
    gang = contract.podgang("floor-7", 0, NAMESPACE, PODS)
    for reference, name in zip(gang["spec"]["podgroups"][0]["podReferences"], pods, strict=True):
        reference["name"] = name
    for floor in (contract.service("floor-7", 0), contract.podclique("floor-7", 0, PODS), gang):
        found = created.api.get(floor["kind"], floor["metadata"]["name"])
        assert of_contract(found) == of_contract(floor)


def test_pods_are_those_of_the_operator(created: Simulator) -> None:
    found = {pod["metadata"]["labels"][labels.POD_INDEX]: pod for pod in created.api.objects("Pod")}
    for number in range(PODS):
        pod, floor = found[str(number)], contract.pod("floor-7", 0, NAMESPACE, number, "uid")
        floor["metadata"]["name"] = pod["metadata"]["name"]
        assert of_contract(pod) == of_contract(floor)
        owners = pod["metadata"]["ownerReferences"]
        assert [{**owner, "uid": "uid"} for owner in owners] == floor["metadata"]["ownerReferences"]
