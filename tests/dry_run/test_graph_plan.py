"""What a plan says about DynamoGraphDeployments."""

from __future__ import annotations

from copy import deepcopy

from msgspec.structs import replace

from grove.cluster_state.snapshot_file import decode, encode
from grove.dry_run.documents import Document, read_documents
from grove.dry_run.model import Verdict
from tests.cluster_state.states import shaped
from tests.dry_run.plans import applied_graph, documents_report
from tests.shared import ROOT

STATE = shaped("1x1x2x8", 8, "local")
(GRAPH,) = read_documents((ROOT / "docs/examples/dynamo.yaml").read_text(), "dynamo.yaml", "ns")


def with_spec(**fields: object) -> Document:
    """The graph with other fields of its spec."""
    return replace(GRAPH, body={**GRAPH.body, "spec": {**GRAPH.body["spec"], **fields}})


def test_graph_is_planned_as_the_set_that_it_renders() -> None:
    (found,) = documents_report(STATE, [GRAPH]).plans
    assert (found.kind, found.verdict, found.admission.allowed) == (
        "DynamoGraphDeployment",
        Verdict.FITS,
        True,
    )
    assert {each.kind: each.created for each in found.objects}["PodCliqueSet"] == ("llama",)
    assert [gang.name for gang in found.gangs] == ["llama-0", "llama-0-worker-0"]
    assert all(gang.placed for gang in found.gangs)


def test_running_graph_is_unchanged() -> None:
    (found,) = documents_report(applied_graph(STATE, GRAPH), [GRAPH]).plans
    assert (found.action, found.verdict, found.objects, found.gangs) == ("unchanged", Verdict.FITS, (), ())


def with_token(image: str = "") -> Document:
    """The graph with a value in the environment of its worker, and perhaps another image of that."""
    components = deepcopy(GRAPH.body["spec"]["components"])
    container = components[1]["podTemplate"]["spec"]["containers"][0]
    container["env"] = [{"name": "TOKEN", "value": "hunter2"}]
    container["image"] = image or container["image"]
    return with_spec(components=components)


def test_graph_of_a_snapshot_is_unchanged() -> None:
    """Its set has environment variables that are rendered, and hashes over the values of its own."""
    state = decode(encode(applied_graph(STATE, with_token())), "cluster.json")
    (found,) = documents_report(state, [with_token()], redacted=True).plans
    assert (found.action, found.verdict, found.objects, found.gangs) == ("unchanged", Verdict.FITS, (), ())


def test_graph_of_a_snapshot_is_updated() -> None:
    state = decode(encode(applied_graph(STATE, with_token())), "cluster.json")
    (found,) = documents_report(state, [with_token("runtime:2")], redacted=True).plans
    assert found.action == "update"
    assert found.update is not None
    assert set(found.update.units) == {"llama-0-worker-0", "llama-0-worker-1"}


def test_annotations_of_the_operator_stay_on_a_graph() -> None:
    metadata = {**GRAPH.body["metadata"], "annotations": {"example.com/team": "a"}}
    annotated = replace(GRAPH, body={**GRAPH.body, "metadata": metadata})
    (found,) = documents_report(applied_graph(STATE, GRAPH), [annotated]).plans
    assert (found.verdict, found.objects) == (Verdict.FITS, ())


def test_update_rules_apply_to_a_running_graph() -> None:
    components = deepcopy(GRAPH.body["spec"]["components"])
    components[1]["multinode"] = {"nodeCount": 4}
    del components[0]
    (found,) = documents_report(applied_graph(STATE, GRAPH), [with_spec(components=components)]).plans
    assert found.verdict is Verdict.REJECTED
    assert "spec.components" in found.admission.message


def test_replicas_of_an_adapter_are_not_for_users() -> None:
    components = deepcopy(GRAPH.body["spec"]["components"])
    components[1]["scalingAdapter"] = {}
    state = applied_graph(STATE, with_spec(components=deepcopy(components)))
    components[1]["replicas"] = 3
    (found,) = documents_report(state, [with_spec(components=components)]).plans
    assert found.verdict is Verdict.REJECTED
    assert "replicas" in found.admission.message
