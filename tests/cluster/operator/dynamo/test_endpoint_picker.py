"""A deployment with an endpoint picker, with the real CRD of InferencePools: before it is installed, with it,
and after it is removed."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from grove.api.configuration.types import Dynamo, OperatorConfiguration
from grove.dynamo.admission.defaults import default_graph
from grove.dynamo.backends.object_writes import contains
from grove.dynamo.render import auxiliary_objects
from grove.kube.client.resource import CONFIG_MAPS, SERVICES
from grove.operator.caches.dynamo import GRAPHS, INFERENCE_POOLS
from grove.operator.dynamo_settings import DynamoSettings
from tests.cluster.conftest import PATIENCE, established, removed
from tests.cluster.conftest import apply as install
from tests.cluster.operator.dynamo.graph_status import condition, ready, state
from tests.cluster.operator.dynamo.test_deployments import without_gpus
from tests.cluster.operator.support.harness import operating
from tests.cluster.operator.support.world import World
from tests.dynamo.builders import component, deployment, graph
from tests.dynamo.render.test_endpoint_picker import example

MODULE = "sigs.k8s.io/gateway-api-inference-extension@v1.0.0"
FILE = "config/crd/bases/inference.networking.k8s.io_inferencepools.yaml"
CONFIGURATION = OperatorConfiguration(dynamo=Dynamo(enabled=True))
RESOURCES = {"Service": SERVICES, "ConfigMap": CONFIG_MAPS, "InferencePool": INFERENCE_POOLS}


@pytest.fixture(scope="session")
def pool_definition(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The CRD of InferencePools, from its Go module; skips the test if the module cannot be downloaded."""
    go = shutil.which("go")
    if go is None:
        pytest.skip(f"no Go to download {MODULE}, which has the CRD of InferencePools")
    answer = subprocess.run(
        [go, "mod", "download", "-json", MODULE],
        cwd=tmp_path_factory.mktemp("inference"),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    if answer.returncode:
        pytest.skip(f"{MODULE}, which has the CRD of InferencePools, cannot be downloaded: {answer.stderr}")
    text = Path(json.loads(answer.stdout)["Dir"], FILE).read_text()
    definition: dict[str, Any] = yaml.safe_load(text)
    definition.pop("status", None)
    return definition


async def test_picker_waits_for_pools_and_is_rendered_exactly(
    dynamo: World, pool_definition: dict[str, Any]
) -> None:
    crd = pool_definition["metadata"]["name"]
    body = default_graph(without_gpus(example()), creating=True)
    body["metadata"]["namespace"] = dynamo.namespace
    plain = deployment(component("Web", "frontend"))
    plain["metadata"] = {"name": "plain"}
    try:
        async with operating(dynamo, dynamo=DynamoSettings.of(CONFIGURATION)):
            await dynamo.create(GRAPHS, body)
            await dynamo.until(lambda: state(dynamo, "qwen") == "failed", "the missing CRD reported")
            message = condition(dynamo.get(GRAPHS, "qwen"), "Ready")["message"]
            assert "needs InferencePools, and the cluster does not serve" in message
            await install(dynamo.client, pool_definition)
            async with asyncio.timeout(PATIENCE):
                await established(dynamo.client, crd)
            await dynamo.watch(INFERENCE_POOLS)
            await dynamo.until(lambda: ready(dynamo, "qwen"), "ready with the CRD that came later")
            await check_objects(dynamo, body)
            await removed(dynamo.client, crd)
            await dynamo.until(lambda: state(dynamo, "qwen") == "failed", "the removed CRD reported")
            await dynamo.create(GRAPHS, default_graph(plain, creating=True))
            await dynamo.until(lambda: ready(dynamo, "plain"), "other deployments do not need the CRD")
    finally:
        await removed(dynamo.client, crd)


async def check_objects(dynamo: World, body: dict[str, Any]) -> None:
    """What exists is what is rendered: no field is pruned."""
    found = auxiliary_objects.render(graph(body)).owned
    checked = set()
    for wanted in found:
        kind = wanted["kind"]
        if kind not in RESOURCES:
            continue
        existing = dynamo.get(RESOURCES[kind], wanted["metadata"]["name"])
        assert wanted["metadata"]["labels"].items() <= existing.labels.items()
        assert [owner.name for owner in existing.metadata.owner_references] == ["qwen"]
        assert contains({"spec": wanted.get("spec", {})}, {"spec": existing.spec})
        checked.add(kind)
    assert checked == set(RESOURCES)
    config: Any = await dynamo.client.get(
        CONFIG_MAPS, "qwen-epp-config", as_type=dict, namespace=dynamo.namespace
    )
    assert config["data"] == next(each["data"] for each in found if each["kind"] == "ConfigMap")
    pool = dynamo.get(INFERENCE_POOLS, "qwen-pool")
    assert pool.spec["endpointPickerRef"].pop("failureMode") == "FailClose", "a default of the CRD"
    assert pool.spec["endpointPickerRef"].pop("group") == "", "another one"
    assert pool.spec == next(each["spec"] for each in found if each["kind"] == "InferencePool")
