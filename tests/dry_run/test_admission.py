"""Verdicts of admission: what the answers of an API server mean, and when it is not asked."""

from __future__ import annotations

import asyncio

import pytest

from grove.api.types.clustertopology import ClusterTopology
from grove.api.types.podcliqueset import PodCliqueSet
from grove.cluster_state.kinds import TOPOLOGIES
from grove.dry_run.admission import OWN_RULES, SERVER, Admitted, server_verdict
from grove.dry_run.documents import Document, read_documents
from grove.dry_run.model import AdmissionVerdict, PlanReport, Verdict
from grove.dry_run.planning import Planner, ServerAdmission
from grove.dynamo.api.graph_deployment import DynamoGraphDeployment
from grove.kube.errors import ApiStatus, StatusCause, StatusDetails, api_error
from tests.cluster_state.states import shaped, unreadable
from tests.dry_run.plans import NOW, SETUP, documents_report
from tests.plan.builders import a_set
from tests.shared import ROOT

NAMED = 'podcliquesets.grove.io "wl" is forbidden: '
RIGHT = 'User "u" cannot create resource "podcliquesets" in API group "grove.io" in the namespace "ns"'
QUOTA = "exceeded quota: sets, requested: count/podcliquesets.grove.io=1, used: 1, limited: 1"
WEBHOOK = 'Internal error occurred: failed calling webhook "sets.grove.io": connection refused'
SET = Document(PodCliqueSet.KIND, a_set("a:1", topologyConstraint={"topologyName": "racks"}))
TOPOLOGY = Document(
    ClusterTopology.KIND,
    {
        "apiVersion": ClusterTopology.KIND.api_version,
        "kind": "ClusterTopology",
        "metadata": {"name": "racks"},
        "spec": {"levels": [{"domain": "rack", "key": "example.com/rack"}]},
    },
)


def details(kind: str, name: str, *causes: StatusCause) -> StatusDetails:
    return StatusDetails(name, kind=kind, causes=causes)


@pytest.mark.parametrize(
    ("status", "known"),
    [
        (ApiStatus(code=403, message=NAMED + RIGHT), None),
        (ApiStatus(code=409, reason="AlreadyExists"), None),
        (ApiStatus(code=409, reason="Conflict"), None),
        (ApiStatus(code=404, details=details("podcliquesets", "wl")), None),
        (ApiStatus(code=403, message=NAMED + QUOTA), True),
        (ApiStatus(code=403, message=NAMED + "unable to create: namespace ns is being terminated"), True),
        (ApiStatus(code=403, message=f'admission webhook "w" denied the request: {RIGHT}'), True),
        (ApiStatus(code=404, message='namespaces "x" not found', details=details("namespaces", "x")), True),
        (ApiStatus(code=422, message="spec.replicas: Invalid value"), True),
        (ApiStatus(code=500, message=WEBHOOK), False),
        (ApiStatus(code=429, message="too many requests"), False),
    ],
)  # fmt: skip
def test_failed_request_is_a_verdict_or_unknown(status, known) -> None:
    found = server_verdict(api_error("create", status), SET)
    assert (found.known if found is not None else None) is known
    assert found is None or not found.allowed
    assert found is None or found.message.startswith(status.message)


def test_kind_that_is_not_served_needs_its_crds() -> None:
    error = api_error("create", ApiStatus(code=404, message="404 page not found"))
    graph = Document(DynamoGraphDeployment.KIND, {"apiVersion": "nvidia.com/v1alpha1"})
    assert [server_verdict(error, each) for each in (SET, graph)] == [
        AdmissionVerdict(False, SERVER, f"the cluster does not serve {kind}: install the CRDs with {command}")
        for kind, command in (
            ("PodCliqueSet of grove.io/v1alpha1", "grove crds --apply"),
            ("DynamoGraphDeployment of nvidia.com/v1alpha1", "grove crds --dynamo --apply"),
        )
    ]


def asked(state, *documents: Document) -> tuple[PlanReport, list[str]]:
    """The plan of documents, and for which of them a server was asked. It allows everything."""
    names: list[str] = []

    async def allow(document: Document, _stored) -> Admitted:
        names.append(document.kind.name)
        return Admitted(document.body, AdmissionVerdict(True, "a server"))

    return planned(state, allow, *documents), names


def planned(state, ask_server: ServerAdmission, *documents: Document) -> PlanReport:
    async def run() -> PlanReport:
        return await Planner(state, SETUP, NOW, ask_server).plan(list(documents))

    return asyncio.run(run())


def test_server_is_not_asked_about_a_new_topology() -> None:
    found, names = asked(shaped(), TOPOLOGY, SET)
    assert names == ["ClusterTopology"]
    assert found.plans[1].admission == AdmissionVerdict(True, OWN_RULES)
    assert found.plans[1].notes == ("the API server does not know racks of this input yet: it is not asked",)


def test_server_is_not_asked_if_a_graph_may_choose() -> None:
    (graph,) = read_documents((ROOT / "docs/examples/dynamo.yaml").read_text(), "dynamo.yaml", "ns")
    assert asked(shaped(), TOPOLOGY, graph)[1] == ["ClusterTopology"]
    assert asked(shaped("1x1x2x8", 8, "t"), graph)[1] == ["DynamoGraphDeployment"]


def test_server_is_asked_about_a_known_topology() -> None:
    named = {"topologyName": "t", "pack": {"required": "rack"}}
    other = Document(PodCliqueSet.KIND, a_set("a:1", topologyConstraint=named))
    found, names = asked(shaped("1x1x2x2", 8, "t"), TOPOLOGY, other)
    assert names == ["ClusterTopology", "PodCliqueSet"]
    assert found.plans[1].notes == ()


def test_server_that_fails_leaves_it_unknown() -> None:
    async def fail(document: Document, _stored) -> Admitted:
        return Admitted(document.body, AdmissionVerdict(False, "a server", WEBHOOK, known=False))

    (found,) = planned(shaped(), fail, SET).plans
    assert (found.verdict, found.action) == (Verdict.UNKNOWN, "create")


def test_set_of_an_unread_topology_is_unknown() -> None:
    problem = "no right to list clustertopologies in the whole cluster (403 Forbidden)"
    (found,) = documents_report(unreadable(shaped(), TOPOLOGIES, problem), [SET]).plans
    assert (found.verdict, found.action) == (Verdict.UNKNOWN, "create")
    assert found.admission == AdmissionVerdict(False, OWN_RULES, problem, known=False)


def test_set_that_is_wrong_anyway_is_rejected() -> None:
    body = a_set("a:1", topologyConstraint={"topologyName": "racks"})
    body["spec"]["template"]["cliques"][0]["spec"]["minAvailable"] = 3
    state = unreadable(shaped(), TOPOLOGIES, "no right")
    (found,) = documents_report(state, [Document(PodCliqueSet.KIND, body)]).plans
    assert found.verdict is Verdict.REJECTED
