"""The API server and admission agree on which rendered sets have duplicates."""

from __future__ import annotations

from typing import Any

from grove.api.crds import openapi
from grove.api.shapes.list_keys import list_key_errors
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.errors import Invalid
from grove.rules.podcliqueset.defaults import default_set
from tests.cluster.operator.support.objects import SETS
from tests.dynamo.admission.test_rendered_pods import CACHE, DUPLICATES, cached
from tests.dynamo.builders import component, deployment, rendered

POD = openapi.embedded("io.k8s.api.core.v1.PodSpec")
ACCEPTED = [deployment(component()), cached({"name": "cache", "mountPath": CACHE})]


async def test_server_refuses_the_duplicates_that_admission_finds(
    client: Client, namespace: str, crds: object
) -> None:
    refused = 0
    for body in (*ACCEPTED, *(body for body, _ in DUPLICATES)):
        workload = default_set(rendered(body))
        found = [
            error
            for clique in workload["spec"]["template"]["cliques"]
            for error in list_key_errors(clique["spec"]["podSpec"], POD, "podSpec")
        ]
        answer = await _refusal(client, namespace, workload)
        assert ("Duplicate value" in answer) == bool(found), (found, answer)
        refused += bool(found)
    assert refused >= len(DUPLICATES) - 1, "all but the duplicate volume, of which one is rendered"


async def _refusal(client: Client, namespace: str, workload: dict[str, Any]) -> str:
    workload = {**workload, "metadata": {**workload["metadata"], "namespace": namespace}}
    try:
        await client.create(SETS, workload, as_type=Object, namespace=namespace, dry_run=True)
    except Invalid as refusal:
        return str(refusal)
    return ""
