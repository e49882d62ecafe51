"""Fields of Kubernetes' own types inside of our kinds: the API server stores every one of them."""

from __future__ import annotations

from typing import Any

import pytest

from grove.api.crds import openapi
from grove.api.crds.openapi import Extract
from grove.kube.client.client import Client
from tests.api.every_field import CLAIM_TEMPLATE, METRIC, POD_SPEC, every_field
from tests.cluster.api.objects import clique_template, create_strictly, pod_clique, pod_clique_set
from tests.cluster.api.test_manifests import missing
from tools import kubernetes_openapi


@pytest.fixture(params=["this version", "all versions"])
async def extract(request: Any, client: Client) -> Extract:
    """What the running API server serves, and what all supported versions have together."""
    if request.param == "all versions":
        return openapi.extract()
    return await kubernetes_openapi.fetch(client)


def our_objects(extract: Extract) -> list[dict[str, Any]]:
    """One object of each kind that contains types of Kubernetes, with all of their fields."""
    pod, metric = every_field(extract, POD_SPEC), every_field(extract, METRIC)
    scaling = {"maxReplicas": 2, "metrics": [metric]}
    template = {
        "cliques": [clique_template(spec={"podSpec": pod, "autoScalingConfig": scaling})],
        "podCliqueScalingGroups": [{"name": "g", "cliqueNames": ["worker"], "scaleConfig": scaling}],
        "resourceClaimTemplates": [{"name": "c", "templateSpec": every_field(extract, CLAIM_TEMPLATE)}],
    }
    return [pod_clique_set(**template), pod_clique(podSpec=pod, autoScalingConfig=scaling)]


async def test_every_field_survives_in_our_kinds(crds, client, namespace, extract):
    for body in our_objects(extract):
        stored = await create_strictly(client, body, namespace)
        assert missing(body["spec"], stored["spec"], body["kind"]) == []
