"""Which rule answers a review, and the forms of its answers."""

from __future__ import annotations

import base64
import json

import msgspec
import pytest

from grove.api.naming import labels
from grove.api.types.podcliqueset import PodCliqueSet
from grove.kube.client.client import Client
from grove.kube.client.transport import Response
from grove.kube.errors import LostReply
from grove.operator.caches.registry import Caches
from grove.rules.model import Facts
from grove.rules.podcliqueset.defaults import default_set
from grove.webhooks.admission_review import InvalidReview
from grove.webhooks.cluster_facts import ClusterFacts
from grove.webhooks.registrations import Path
from grove.webhooks.reviewer import Reviewer
from tests.kube.executor.stub_transport import StubTransport, refused
from tests.rules.builders import in_use
from tests.webhooks.reviews import OPERATOR, TOPOLOGY, UID, patched, respond, review, reviewer, workload

AWARE = Facts(topology_aware=True)


async def test_defaults_come_as_a_patch():
    body = workload()
    response = await respond(reviewer(), Path.DEFAULT_SET, review("CREATE", body))
    assert (response["uid"], response["allowed"], response["patchType"]) == (UID, True, "JSONPatch")
    assert patched(body, response) == default_set(body)
    operations = json.loads(base64.b64decode(response["patch"]))
    assert {"op": "add", "path": "/spec/template/cliques/0/spec/minAvailable", "value": 2} in operations
    assert {each["op"] for each in operations} == {"add"}


async def test_what_is_complete_needs_no_patch():
    whole = default_set(workload())
    response = await respond(reviewer(), Path.DEFAULT_SET, review("UPDATE", whole, whole))
    assert response == {"uid": UID, "allowed": True, "status": {"code": 200}}


async def test_a_refusal_tells_everything_at_once():
    wrong = default_set(workload(terminationDelay="0s"))
    wrong["spec"]["replicas"] = -1
    response = await respond(reviewer(), Path.VALIDATE_SET, review("CREATE", wrong))
    assert response["allowed"] is False
    assert (response["status"]["code"], response["status"]["reason"]) == (403, "Forbidden")
    assert response["status"]["message"] == (
        "[spec.replicas: Invalid value: -1: must be non-negative, "
        'spec.template.terminationDelay: Invalid value: "0s": must be greater than 0]'
    )


async def test_warnings_come_along():
    body = default_set(workload())
    body["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["restartPolicy"] = "Never"
    response = await respond(reviewer(), Path.VALIDATE_SET, review("CREATE", body))
    assert response["allowed"]
    assert "restartPolicy" in response["warnings"][0]


async def test_an_update_is_judged_with_what_is_stored():
    old, new = (
        default_set(workload(cliqueStartupType=f"CliqueStartupType{x}")) for x in ("AnyOrder", "InOrder")
    )
    response = await respond(reviewer(), Path.VALIDATE_SET, review("UPDATE", new, old))
    assert "field is immutable" in response["status"]["message"]


async def test_a_topology_is_judged():
    levels = [{"domain": "rack", "key": "a"}, {"domain": "rack", "key": "b"}]
    body = {"metadata": {"name": "t"}, "spec": {"levels": levels}}
    response = await respond(reviewer(), Path.VALIDATE_TOPOLOGY, review("CREATE", body, resource=TOPOLOGY))
    assert response["status"]["message"] == 'spec.levels[1].domain: Duplicate value: "rack"'


async def test_who_loses_by_the_end_of_a_topology_is_told():
    caches = Caches()
    body = workload(topologyConstraint={"topologyName": "h100", "packDomain": "rack"})
    found = msgspec.json.decode(msgspec.json.encode(default_set(body)), type=PodCliqueSet)
    caches.sets.apply_event("ADDED", found)
    levels = [{"domain": "rack", "key": "a"}]
    old = {"metadata": {"name": "h100"}, "kind": "ClusterTopology", "spec": {"levels": levels}}
    asked = review("DELETE", None, old, TOPOLOGY, name="h100")
    for facts, warned in ((AWARE, True), (Facts(), False)):
        nobody = Client(StubTransport(lambda _: refused(404, "NotFound"), lambda _: 0.0))
        by = Reviewer(ClusterFacts(caches, nobody, facts))
        response = await respond(by, Path.VALIDATE_TOPOLOGY, asked)
        assert response["allowed"]
        assert ("PodCliqueSet ns/app loses rack" in str(response.get("warnings"))) is warned


@pytest.mark.parametrize("path", [Path.DEFAULT_SET, Path.VALIDATE_SET, Path.VALIDATE_TOPOLOGY])
async def test_a_rule_for_something_else_is_refused_in_words(path):
    pods = {"group": "", "version": "v1", "resource": "pods"}
    response = await respond(reviewer(), path, review("CREATE", {}, resource=pods))
    assert response["status"]["code"] == 400
    assert response["status"]["message"].startswith("unexpected resource pods.: correct the rules")


@pytest.mark.parametrize("old", [None, [], 1, "x"])
async def test_without_the_objects_nothing_can_be_said(old):
    response = await respond(reviewer(), Path.VALIDATE_SET, review("UPDATE", default_set(workload()), old))
    assert response["status"]["code"] == 400
    assert response["status"]["message"].startswith("request.oldObject: ")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "truncated"),
        (b"{", "truncated"),
        (b"[]", "Expected `object`"),
        (b"{}", "missing required field"),
        (b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}', "request"),
        (b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":null}', "request"),
        (b"\xff\xfe", "malformed"),
        (b'{"kind":"\xff"}', "not an AdmissionReview"),
        (b"[" * 100_000, "nested more than 200 levels"),
        (b'{"a":' * 100_000, "nested more than 200 levels"),
    ],
)
async def test_what_is_no_review_is_told_so(body, words):
    with pytest.raises(InvalidReview, match=words) as told:
        await reviewer().answer(Path.VALIDATE_SET, body)
    assert len(str(told.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("field", "value"), [("apiVersion", "admission.k8s.io/v1beta1"), ("kind", "Pod"), ("kind", "x" * 10**6)]
)
async def test_another_version_or_kind_is_told_so(field, value):
    with pytest.raises(InvalidReview, match=r"not an AdmissionReview of .* but") as told:
        await respond(reviewer(), Path.VALIDATE_SET, {**review("CREATE", workload()), field: value})
    assert len(str(told.value)) < 400


@pytest.mark.parametrize("path", Path)
async def test_deep_objects_are_refused_not_stumbled_over(path):
    deep = review("CREATE", "DEEP")
    for depth in (500, 900, 2_000, 100_000):
        nested = b'{"spec":' * depth + b"1" + b"}" * depth
        sent = json.dumps(deep).encode().replace(b'"DEEP"', nested)
        try:
            response = await respond(reviewer(), path, sent)
        except InvalidReview:
            continue
        assert response["allowed"] or response["status"]["code"] in (400, 403)


SERVED = {labels.MANAGED_BY: labels.OPERATOR, labels.PART_OF: "app"}


def managed(operation: str, user: str = "jane", carried: dict[str, str] = SERVED):
    found = {"metadata": {"name": "app-0", "labels": carried}}
    sides = {"CREATE": (found, None), "UPDATE": (found, found), "DELETE": (None, found)}
    services = {"group": "", "version": "v1", "resource": "services"}
    return review(operation, *sides[operation], services, userInfo={"username": user})


def the_set(**annotations: str) -> StubTransport:
    body = {"metadata": {"name": "app", "namespace": "ns", "uid": "1", "annotations": annotations}}
    return StubTransport(lambda _: replied(body), lambda _: 0.0)


def replied(body: object) -> Response:
    return Response(200, {}, json.dumps(body).encode())


@pytest.mark.parametrize("operation", ["CREATE", "UPDATE", "DELETE"])
async def test_a_set_that_the_cache_does_not_know_yet_protects_its_objects(operation):
    asked = the_set()
    response = await respond(reviewer(replies=asked), Path.AUTHORIZE, managed(operation))
    assert response["status"]["code"] == 403
    assert "belongs to PodCliqueSet app" in response["status"]["message"]
    assert [sent.request.name for sent in asked.sent] == ["app"]
    ours = await respond(reviewer(replies=asked), Path.AUTHORIZE, managed(operation, OPERATOR))
    assert ours["allowed"]


async def test_what_has_no_set_passes_with_a_warning():
    response = await respond(reviewer(), Path.AUTHORIZE, managed("UPDATE"))
    assert response["allowed"]
    assert "does not exist" in response["warnings"][0]
    stray = await respond(reviewer(), Path.AUTHORIZE, managed("DELETE", carried={}))
    assert "has no label" in stray["warnings"][0]


async def test_without_the_authorizer_there_is_no_such_path():
    assert Path.AUTHORIZE not in reviewer(authorizer=False).paths


CONSTRAINED = {"topologyConstraint": {"topologyName": "h100", "pack": {"preferred": "rack"}}}


async def test_a_topology_that_the_cache_does_not_know_is_asked_for():
    body = {"metadata": {"name": "h100"}, "spec": {"levels": [{"domain": "rack", "key": "r"}]}}
    asked = StubTransport(lambda _: replied(body), lambda _: 0.0)
    new = review("CREATE", default_set(workload(**CONSTRAINED)))
    assert (await respond(reviewer(AWARE, asked), Path.VALIDATE_SET, new))["allowed"]
    assert len(asked.sent) == 1


async def test_a_topology_that_does_not_exist_is_refused_by_name():
    asked = StubTransport(lambda _: refused(404, "NotFound"), lambda _: 0.0)
    new = review("CREATE", default_set(workload(**CONSTRAINED)))
    response = await respond(reviewer(AWARE, asked), Path.VALIDATE_SET, new)
    assert '"h100" not found' in response["status"]["message"]
    assert len(asked.sent) == 2  # under both names of the kind


async def test_a_server_that_cannot_be_asked_is_no_reason_to_refuse_for_good():
    asked = StubTransport(lambda _: LostReply("gone"), lambda _: 0.0)
    client = Client(asked)
    by = Reviewer(ClusterFacts(Caches(), client, AWARE))
    response = await respond(by, Path.VALIDATE_SET, review("CREATE", default_set(workload(**CONSTRAINED))))
    assert response["status"]["code"] == 503
    assert response["status"]["message"].endswith("try again")


QUEUED = {"metadata": {"name": "default"}, "status": {"state": "Open"}}


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (lambda: replied(QUEUED), ""),
        (lambda: refused(404, "NotFound"), 'Volcano queue "default" not found'),
        (lambda: refused(403, "Forbidden"), "Queue default could not be looked up"),
    ],
)
async def test_what_a_scheduler_wants_to_know_is_looked_up(reply, said):
    asked = StubTransport(lambda _: reply(), lambda _: 0.0)
    body = default_set(workload())
    body["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["schedulerName"] = "volcano"
    by = reviewer(Facts(backends=in_use("volcano")), asked)
    response = await respond(by, Path.VALIDATE_SET, review("CREATE", body))
    assert response["allowed"] == (not said)
    assert said in response["status"].get("message", "")
    assert [sent.request.name for sent in asked.sent] == ["default"]


async def test_names_that_cannot_exist_are_not_asked_for():
    asked = StubTransport(lambda _: refused(404, "NotFound"), lambda _: 0.0)
    cluster_facts = ClusterFacts(Caches(), Client(asked), AWARE)
    odd = ["", "..", "a/b", "a?b", "A", "x" * 300, "é", "a\n"]
    await cluster_facts.facts_with_topologies(odd + [f"t{number}" for number in range(1000)])
    assert await cluster_facts.parent("ns", "../x") is None
    assert {sent.request.name for sent in asked.sent} == {"t0", "t1", "t10", "t100"}


async def test_a_fault_of_ours_is_an_answer_too(monkeypatch, capsys):
    def broken(*_: object) -> None:
        raise KeyError("x")

    monkeypatch.setattr("grove.rules.podcliqueset.validation.on_create", broken)
    response = await respond(reviewer(), Path.VALIDATE_SET, review("CREATE", default_set(workload())))
    assert response["status"]["code"] == 500
    assert "internal error of the Grove operator" in response["status"]["message"]
    assert "review failed" in capsys.readouterr().out
