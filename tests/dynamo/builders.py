"""Builders of valid DynamoGraphDeployments, and accessors of what is rendered from them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from msgspec.structs import replace

from grove.dynamo.context import GraphContext
from grove.dynamo.decode.normalize import parse
from grove.dynamo.graph import Graph
from grove.dynamo.render import podcliqueset
from grove.dynamo.snapshot import GraphSnapshot, StoredGraph, snapshot_of
from grove.rules.model import Facts
from tests.rules.builders import in_use

Body = dict[str, Any]

KNOWN = GraphContext(
    topology_aware=True,
    topologies={"dc": ("zone", "block", "rack", "host")},
    scheduler="kai-scheduler",
)
FACTS = Facts(backends=in_use("kai-scheduler"), topology_aware=True, topologies=KNOWN.topologies)
"""The same facts for the rules of sets; with a scheduler that supports topology constraints."""
ON_KAI = podcliqueset.RenderSettings(topology="dc", scheduler="kai-scheduler")
VLLM = ["python3", "-m", "dynamo.vllm"]


def manifest(name: str) -> Body:
    """One of the files in `manifests/`."""
    text = (Path(__file__).parent / "manifests" / f"{name}.yaml").read_text()
    body: Body = yaml.safe_load(text)
    return body


def component(name: str = "Worker", kind: str = "worker", main: Body | None = None, **more: Any) -> Body:
    """A component in v1beta1."""
    container = {"name": "main", "image": "dynamo:1.4.1", **(main or {})}
    typed = {"type": kind} if kind else {}
    return {"name": name, **typed, "podTemplate": {"spec": {"containers": [container]}}, **more}


def engine(
    args: list[str], gpus: int = 1, nodes: int = 2, command: list[str] | None = None, **more: Any
) -> Body:
    """A multi-node component."""
    main: Body = {"command": command or VLLM, "args": args}
    if gpus:
        main["resources"] = {"limits": {"nvidia.com/gpu": str(gpus)}}
    return component(main=main, multinode={"nodeCount": nodes}, **more)


def deployment(*components: Body, annotations: dict[str, str] | None = None, **spec: Any) -> Body:
    """A graph in v1beta1."""
    return {
        "apiVersion": "nvidia.com/v1beta1",
        "kind": "DynamoGraphDeployment",
        "metadata": {"name": "app", "namespace": "ns", "annotations": annotations or {}},
        "spec": {"components": list(components), **spec},
    }


def alpha(spec: Body | None = None, **services: Body) -> Body:
    """A graph in v1alpha1."""
    body = deployment()
    body["apiVersion"] = "nvidia.com/v1alpha1"
    body["spec"] = {"services": services, **(spec or {})}
    return body


def service(kind: str = "worker", main: Body | None = None, **more: Any) -> Body:
    """A service in v1alpha1."""
    extra = {"mainContainer": {"image": "dynamo:1.4.1", **(main or {})}}
    return {"componentType": kind, "extraPodSpec": extra, **more}


def graph(body: Body) -> Graph:
    """The normalised graph."""
    return parse(body).graph


def with_stored(found: GraphSnapshot, stored: StoredGraph | None) -> GraphSnapshot:
    """The snapshot after the graph has changed."""
    assert stored is not None
    now = snapshot_of(stored, found.context, found.facts)
    return replace(
        found,
        stored=stored,
        parsed=now.parsed,
        decode_errors=now.decode_errors,
        auxiliary=now.auxiliary,
    )


def rendered(body: Body, setting: podcliqueset.RenderSettings | None = None) -> Body:
    """The rendered PodCliqueSet."""
    return podcliqueset.workload(graph(body), setting or podcliqueset.RenderSettings(topology="dc"))


def cliques(body: Body) -> dict[str, Body]:
    """The cliques of the rendered set, by name."""
    return {each["name"]: each for each in rendered(body)["spec"]["template"]["cliques"]}


def main_of(clique: Body) -> Body:
    """The main container of a clique."""
    found: Body = clique["spec"]["podSpec"]["containers"][0]
    return found


def env_of(clique: Body) -> dict[str, Any]:
    """The environment variables of the main container of a clique."""
    return {each["name"]: each.get("value") for each in main_of(clique)["env"]}
