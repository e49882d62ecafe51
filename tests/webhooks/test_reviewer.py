"""Which rule decides a review, and the forms of the responses."""

from __future__ import annotations

import base64
import json

import msgspec
import pytest

from grove import timing
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


async def test_defaults_are_patched():
    body = workload()
    response = await respond(reviewer(), Path.DEFAULT_SET, review("CREATE", body))
    assert (response["uid"], response["allowed"], response["patchType"]) == (UID, True, "JSONPatch")
    assert patched(body, response) == default_set(body)
    operations = json.loads(base64.b64decode(response["patch"]))
    assert {"op": "add", "path": "/spec/template/cliques/0/spec/minAvailable", "value": 2} in operations
    assert {each["op"] for each in operations} == {"add"}


async def test_complete_set_gets_no_patch():
    whole = default_set(workload())
    response = await respond(reviewer(), Path.DEFAULT_SET, review("UPDATE", whole, whole))
    assert response == {"uid": UID, "allowed": True, "status": {"code": 200}}


async def test_denial_lists_all_errors():
    wrong = default_set(workload(terminationDelay="0s"))
    wrong["spec"]["replicas"] = -1
    response = await respond(reviewer(), Path.VALIDATE_SET, review("CREATE", wrong))
    assert response["allowed"] is False
    assert (response["status"]["code"], response["status"]["reason"]) == (403, "Forbidden")
    assert response["status"]["message"] == (
        "[spec.replicas: Invalid value: -1: must be non-negative, "
        'spec.template.terminationDelay: Invalid value: "0s": must be greater than 0]'
    )


async def test_allowed_set_carries_warnings():
    body = default_set(workload())
    body["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["restartPolicy"] = "Never"
    response = await respond(reviewer(), Path.VALIDATE_SET, review("CREATE", body))
    assert response["allowed"]
    assert "restartPolicy" in response["warnings"][0]


async def test_update_is_validated_against_stored_set():
    old, new = (
        default_set(workload(cliqueStartupType=f"CliqueStartupType{x}")) for x in ("AnyOrder", "InOrder")
    )
    response = await respond(reviewer(), Path.VALIDATE_SET, review("UPDATE", new, old))
    assert "field is immutable" in response["status"]["message"]


async def test_invalid_topology_is_denied():
    levels = [{"domain": "rack", "key": "a"}, {"domain": "rack", "key": "b"}]
    body = {"metadata": {"name": "t"}, "spec": {"levels": levels}}
    response = await respond(reviewer(), Path.VALIDATE_TOPOLOGY, review("CREATE", body, resource=TOPOLOGY))
    assert response["status"]["message"] == 'spec.levels[1].domain: Duplicate value: "rack"'


@pytest.mark.parametrize(
    "constraint",
    [
        {"topologyName": "h100", "packDomain": "rack"},
        {
            "topologyName": "other",
            "packDomain": "rack",
            "fallbacks": [{"packDomain": "zone"}, {"topologyName": "h100"}],
        },
    ],
    ids=["of the set", "of a fallback"],
)
async def test_topology_delete_warns_about_affected_sets(constraint):
    caches = Caches()
    body = workload(topologyConstraint=constraint)
    found = msgspec.json.decode(msgspec.json.encode(default_set(body)), type=PodCliqueSet)
    caches.sets.apply_event("ADDED", found)
    levels = [{"domain": "rack", "key": "a"}]
    old = {"metadata": {"name": "h100"}, "kind": "ClusterTopology", "spec": {"levels": levels}}
    request = review("DELETE", None, old, TOPOLOGY, name="h100")
    for facts, warned in ((AWARE, True), (Facts(), False)):
        client = Client(StubTransport(lambda _: refused(404, "NotFound"), lambda _: 0.0))
        by = Reviewer(ClusterFacts(caches, client, facts))
        response = await respond(by, Path.VALIDATE_TOPOLOGY, request)
        assert response["allowed"]
        assert ("PodCliqueSet ns/app loses rack" in str(response.get("warnings"))) is warned


@pytest.mark.parametrize("path", [Path.DEFAULT_SET, Path.VALIDATE_SET, Path.VALIDATE_TOPOLOGY])
async def test_unexpected_resource_is_denied_with_message(path):
    pods = {"group": "", "version": "v1", "resource": "pods"}
    response = await respond(reviewer(), path, review("CREATE", {}, resource=pods))
    assert response["status"]["code"] == 400
    assert response["status"]["message"].startswith("unexpected resource pods.: correct the rules")


@pytest.mark.parametrize("old", [None, [], 1, "x"])
async def test_update_without_old_object_is_denied(old):
    response = await respond(reviewer(), Path.VALIDATE_SET, review("UPDATE", default_set(workload()), old))
    assert response["status"]["code"] == 400
    assert response["status"]["message"].startswith("request.oldObject: ")


@pytest.mark.parametrize(
    ("body", "message"),
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
async def test_invalid_review_raises_with_reason(body, message):
    with pytest.raises(InvalidReview, match=message) as error:
        await reviewer().answer(Path.VALIDATE_SET, body)
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("field", "value"), [("apiVersion", "admission.k8s.io/v1beta1"), ("kind", "Pod"), ("kind", "x" * 10**6)]
)
async def test_other_review_version_or_kind_raises(field, value):
    with pytest.raises(InvalidReview, match=r"not an AdmissionReview of .* but") as error:
        await respond(reviewer(), Path.VALIDATE_SET, {**review("CREATE", workload()), field: value})
    assert len(str(error.value)) < 400


@pytest.mark.parametrize("path", Path)
async def test_deep_objects_are_denied_without_exception(path):
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


def managed(operation: str, user: str = "jane", object_labels: dict[str, str] = SERVED):
    found = {"metadata": {"name": "app-0", "labels": object_labels}}
    sides = {"CREATE": (found, None), "UPDATE": (found, found), "DELETE": (None, found)}
    services = {"group": "", "version": "v1", "resource": "services"}
    return review(operation, *sides[operation], services, userInfo={"username": user})


def the_set(**annotations: str) -> StubTransport:
    body = {"metadata": {"name": "app", "namespace": "ns", "uid": "1", "annotations": annotations}}
    return StubTransport(lambda _: replied(body), lambda _: 0.0)


def replied(body: object) -> Response:
    return Response(200, {}, json.dumps(body).encode())


@pytest.mark.parametrize("operation", ["CREATE", "UPDATE", "DELETE"])
async def test_set_missing_in_cache_protects_its_objects(operation):
    transport = the_set()
    response = await respond(reviewer(replies=transport), Path.AUTHORIZE, managed(operation))
    assert response["status"]["code"] == 403
    assert "belongs to PodCliqueSet app" in response["status"]["message"]
    assert [sent.request.name for sent in transport.sent] == ["app"]
    ours = await respond(reviewer(replies=transport), Path.AUTHORIZE, managed(operation, OPERATOR))
    assert ours["allowed"]


async def test_object_without_set_is_allowed_with_warning():
    response = await respond(reviewer(), Path.AUTHORIZE, managed("UPDATE"))
    assert response["allowed"]
    assert "does not exist" in response["warnings"][0]
    unlabelled = await respond(reviewer(), Path.AUTHORIZE, managed("DELETE", object_labels={}))
    assert "has no label" in unlabelled["warnings"][0]


async def test_object_with_too_many_values_is_denied():
    many = workload(cliques=[{}] * (timing.OBJECT_VALUES + 1))
    for path in (Path.DEFAULT_SET, Path.VALIDATE_SET):
        response = await respond(reviewer(), path, review("CREATE", many))
        assert response["status"]["message"] == (
            "request.object: more than 100,000 values: divide it into several objects"
        )
    commas = default_set(workload())
    commas["metadata"]["annotations"] = {"a": '",\\"' * timing.OBJECT_VALUES}
    response = await respond(reviewer(), Path.DEFAULT_SET, review("CREATE", commas))
    assert response["allowed"], "what is in strings does not count"


async def test_authorizer_disabled_serves_no_path():
    assert Path.AUTHORIZE not in reviewer(authorizer=False).paths


CONSTRAINED = {"topologyConstraint": {"topologyName": "h100", "pack": {"preferred": "rack"}}}


async def test_topology_missing_in_cache_is_read():
    body = {"metadata": {"name": "h100"}, "spec": {"levels": [{"domain": "rack", "key": "r"}]}}
    transport = StubTransport(lambda _: replied(body), lambda _: 0.0)
    new = review("CREATE", default_set(workload(**CONSTRAINED)))
    assert (await respond(reviewer(AWARE, transport), Path.VALIDATE_SET, new))["allowed"]
    assert len(transport.sent) == 1


async def test_missing_topology_is_denied_by_name():
    transport = StubTransport(lambda _: refused(404, "NotFound"), lambda _: 0.0)
    new = review("CREATE", default_set(workload(**CONSTRAINED)))
    response = await respond(reviewer(AWARE, transport), Path.VALIDATE_SET, new)
    assert '"h100" not found' in response["status"]["message"]
    assert len(transport.sent) == 2  # of both topology kinds


async def test_failed_lookup_is_denied_as_retriable():
    transport = StubTransport(lambda _: LostReply("gone"), lambda _: 0.0)
    client = Client(transport)
    by = Reviewer(ClusterFacts(Caches(), client, AWARE))
    response = await respond(by, Path.VALIDATE_SET, review("CREATE", default_set(workload(**CONSTRAINED))))
    assert response["status"]["code"] == 503
    assert response["status"]["message"].endswith("try again")


QUEUED = {"metadata": {"name": "default"}, "status": {"state": "Open"}}


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (lambda: replied(QUEUED), ""),
        (lambda: refused(404, "NotFound"), 'Volcano queue "default" not found'),
        (lambda: refused(403, "Forbidden"), "Queue default could not be looked up"),
    ],
)
async def test_scheduler_lookup_decides_admission(reply, message):
    transport = StubTransport(lambda _: reply(), lambda _: 0.0)
    body = default_set(workload())
    body["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["schedulerName"] = "volcano"
    by = reviewer(Facts(backends=in_use("volcano")), transport)
    response = await respond(by, Path.VALIDATE_SET, review("CREATE", body))
    assert response["allowed"] == (not message)
    assert message in response["status"].get("message", "")
    assert [sent.request.name for sent in transport.sent] == ["default"]


async def test_invalid_names_are_not_looked_up():
    transport = StubTransport(lambda _: refused(404, "NotFound"), lambda _: 0.0)
    cluster_facts = ClusterFacts(Caches(), Client(transport), AWARE)
    odd = ["", "..", "a/b", "a?b", "A", "x" * 300, "é", "a\n"]
    await cluster_facts.facts_with_topologies(odd + [f"t{number}" for number in range(1000)])
    assert await cluster_facts.parent("ns", "../x") is None
    looked_up = {"t0", "t1", "t10", *(f"t10{number}" for number in range(6))}
    assert {sent.request.name for sent in transport.sent} == looked_up


async def test_rule_exception_is_denied_as_internal_error(monkeypatch, capsys):
    def broken(*_: object) -> None:
        raise KeyError("x")

    monkeypatch.setattr("grove.rules.podcliqueset.validation.on_create", broken)
    response = await respond(reviewer(), Path.VALIDATE_SET, review("CREATE", default_set(workload())))
    assert response["status"]["code"] == 500
    assert "internal error of the Grove operator" in response["status"]["message"]
    assert "review failed" in capsys.readouterr().out
