"""Passes over a key with a server that rejects writes: what is reported, logged and retried."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from grove.api.naming import labels
from grove.api.types.kubernetes_objects import ResourceClaimTemplateObject
from grove.kube.client.transport import Request, Response
from grove.kube.testing.virtual_time import run_in_virtual_time
from grove.operator.reconcilers import replica
from tests.operator.controller_run import Body, ControllerRun, error_reply, namespace_terminating, no_quota
from tests.plan.builders import a_clique, a_set, read_set

CLIQUE = ("wl", 0, "wl-0-a", "a", "wl-0", "hash")


def test_error_is_reported_when_plan_is_also_outdated():
    """One pod is rejected and another write conflicts: the status reports the error nevertheless."""

    async def scenario() -> list[Body]:
        pods: set[str] = set()

        def reject(request: Request, body: Body) -> Response | None:
            if request.verb == "create" and request.resource == "pods":
                pods.add(body["metadata"]["name"])
                return no_quota() if body["metadata"]["name"] == min(pods) else error_reply(409, "Conflict")
            return error_reply(404, "NotFound") if request.verb == "get" else None

        run = ControllerRun(reject)
        await run.work(5)
        return run.transport.sent("patch", "podcliques.grove.io")

    errors_written = [
        body["status"].get("lastErrors") for body in run_in_virtual_time(scenario()) if "status" in body
    ]
    assert [error["code"] for errors in errors_written[:1] for error in errors] == ["ERR_CREATE_POD"]


def test_terminating_namespace_creates_once_without_events():
    def reject(request: Request, body: Body) -> Response | None:
        return namespace_terminating() if (request.verb, request.resource) == ("create", "pods") else None

    async def scenario() -> ControllerRun:
        run = ControllerRun(reject, replicas=2)
        await run.work(600)
        return run

    run = run_in_virtual_time(scenario())
    names = [body["metadata"]["name"] for body in run.transport.sent("create", "pods")]
    assert len(names) == len(set(names)) == 4
    assert run.emitted == []
    statuses = [body["status"] for body in run.transport.sent("patch", "podcliques.grove.io")]
    errors = [status["lastErrors"] for status in statuses if "lastErrors" in status]
    codes = [[error["code"] for error in each] for each in errors]
    assert codes == [["ERR_CREATE_POD"]] * 2, "reported once by each clique, and never cleared"


def test_rejected_write_is_logged_once_over_retries():
    """Two pods with the same error, over half an hour."""

    def reject(request: Request, body: Body) -> Response | None:
        return no_quota() if (request.verb, request.resource) == ("create", "pods") else None

    async def scenario() -> ControllerRun:
        run = ControllerRun(reject)
        await run.work(1800)
        return run

    with capture_logs() as logs:
        run = run_in_virtual_time(scenario())
    assert len(run.transport.sent("create", "pods")) > 2
    (line,) = (line for line in logs if line["event"] == "write rejected")
    assert (line["log_level"], line["key"], line["action"]) == ("warning", "ns/wl/0", "retry")
    assert "could not create pods of wl-0-a" in line["reason"]


def test_server_error_and_terminating_namespace_not_logged():
    sent: list[str] = []

    def reject(request: Request, body: Body) -> Response | None:
        if (request.verb, request.resource) == ("create", "pods"):
            return namespace_terminating()
        sent.append(request.resource)
        return error_reply(503, "ServiceUnavailable") if sent.count(request.resource) == 1 else None

    async def scenario() -> None:
        await ControllerRun(reject).work(600)

    with capture_logs() as logs:
        run_in_virtual_time(scenario())
    assert len(sent) > len(set(sent)), "sent again"
    assert [line for line in logs if line["event"] == "write rejected"] == []


def test_rejected_write_is_retried_with_backoff():
    def reject(request: Request, body: Body) -> Response | None:
        return no_quota() if (request.verb, request.resource) == ("create", "pods") else None

    async def scenario() -> ControllerRun:
        run = ControllerRun(reject)
        await run.work(600)
        return run

    run = run_in_virtual_time(scenario())
    assert 6 <= len(run.transport.sent("create", "pods")) < 100, "with back-off"
    assert run.emitted


def without_claim_template(replicas: int) -> ControllerRun:
    """A set with shared claims whose ResourceClaimTemplate does not exist."""
    shared = [{"name": "t", "scope": "AllReplicas"}]
    run = ControllerRun(lambda request, body: None, replicas, resourceSharing=shared)
    for cache in (run.caches.claims, run.caches.claim_templates):
        cache.replace((), "1")
    return run


def add_claim_template(run: ControllerRun) -> None:
    body = {"metadata": {"namespace": "ns", "name": "t", "uid": "u"}, "spec": {"spec": {}}}
    found = msgspec.json.decode(msgspec.json.encode(body), type=ResourceClaimTemplateObject)
    run.caches.claim_templates.apply_event("ADDED", found)


def set_errors(run: ControllerRun) -> list[list[str]]:
    """The error codes of each write of the set's lastErrors."""
    sent = run.transport.sent("patch", "podcliquesets.grove.io")
    found = [body["status"]["lastErrors"] for body in sent if "lastErrors" in body.get("status", {})]
    return [[error["code"] for error in errors or ()] for errors in found]


def test_missing_claim_template_is_reported_until_it_exists():
    """Nothing fails and nothing is retried; the set reports the missing template."""

    async def scenario() -> ControllerRun:
        run = without_claim_template(replicas=1)
        await run.work(60)
        assert run.transport.sent("create", "pods") == []
        add_claim_template(run)
        await run.work(60)
        return run

    run = run_in_virtual_time(scenario())
    assert len(run.transport.sent("create", "resourceclaims.resource.k8s.io")) == 1
    assert len(run.transport.sent("create", "pods")) == 2
    assert set_errors(run) == [["ERR_SYNC_PCS_RESOURCE_CLAIM"], []]


def test_set_error_is_reported_without_other_changes():
    async def scenario() -> ControllerRun:
        run = without_claim_template(replicas=0)
        add_claim_template(run)
        await run.work(5)
        assert set_errors(run) == []
        run.caches.claim_templates.clear()
        await run.work(5)
        return run

    assert set_errors(run_in_virtual_time(scenario())) == [["ERR_SYNC_PCS_RESOURCE_CLAIM"]]


def observed_generation(run: ControllerRun, kind: str) -> set[str]:
    """The names of objects with an observedGeneration."""
    found = run.transport.api.objects(kind)
    return {body["metadata"]["name"] for body in found if body.get("status", {}).get("observedGeneration")}


def test_generation_observed_despite_error_of_other_clique():
    def reject(request: Request, body: Body) -> Response | None:
        creates_pod = (request.verb, request.resource) == ("create", "pods")
        return no_quota() if creates_pod and body["metadata"]["name"].startswith("wl-0-b-") else None

    async def scenario() -> ControllerRun:
        run = ControllerRun(reject, cliques="a:2 b:2")
        await run.work(60)
        return run

    assert observed_generation(run_in_virtual_time(scenario()), "PodClique") == {"wl-0-a"}


def test_terminating_namesake_keeps_generation_unobserved():
    """A terminating clique of a former set keeps its name and its finalizer; nothing fails meanwhile."""
    owner = {"kind": "PodCliqueSet", "name": "wl", "uid": "before", "controller": True}
    metadata = {"name": "wl-0-a", "namespace": "ns", "uid": "old", "resourceVersion": "1"}
    terminating = {"deletionTimestamp": "2026-01-01T00:00:00Z", "labels": labels.for_clique(*CLIQUE)}
    references = {"ownerReferences": [{"apiVersion": "grove.io/v1alpha1", **owner}]}
    old = {"metadata": {**metadata, **terminating, **references}, "spec": a_clique("a:2")["spec"]}

    def reject(request: Request, body: Body) -> Response | None:
        if request.resource != "podcliques.grove.io":
            return None
        if request.verb == "get":
            return Response(200, {}, msgspec.json.encode(old))
        return error_reply(409, "AlreadyExists", name="wl-0-a")

    async def scenario() -> ControllerRun:
        run = ControllerRun(reject)
        await run.work(60)
        return run

    run = run_in_virtual_time(scenario())
    assert not run.transport.sent("create", "pods")
    assert observed_generation(run, "PodCliqueSet") == set()
    assert set_errors(run) == []


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            {"podCliqueScalingGroups": [{"name": "x", "cliqueNames": ["unknown"]}]},
            "unidentified PodClique names found: use names of spec.template.cliques",
        ),
        ({"terminationDelay": "soon"}, 'Invalid value: "soon"'),
    ],
)
def test_invalid_set_is_reported_and_blocks_no_other_set(wrong, message):
    """The webhooks deny such sets, but may not have been installed, or have lacked the rule."""

    async def scenario() -> ControllerRun:
        run = ControllerRun(lambda request, body: None, **wrong)
        other = run.transport.api.create(a_set("a:2", name="other"))
        run.caches.sets.apply_event("ADDED", read_set(other))
        await run.work(300)
        body = run.transport.api.get("PodCliqueSet", "wl")
        (error,) = body["status"]["lastErrors"]
        assert message in error["description"]
        corrected = {"spec": {"template": dict.fromkeys(wrong)}}
        run.caches.sets.apply_event(
            "MODIFIED", read_set(run.transport.api.patch("PodCliqueSet", "wl", corrected))
        )
        await run.work(60)
        return run

    run = run_in_virtual_time(scenario())
    created = [body["metadata"]["name"] for body in run.transport.sent("create", "pods")]
    assert sum(name.startswith("other-0-a-") for name in created) == 2
    assert sum(name.startswith("wl-0-a-") for name in created) == 2
    assert set_errors(run) == [["ERR_VALIDATE_PODCLIQUESET"], []], "reported once, and cleared"


def test_unexpected_failure_of_a_plan_is_reported(monkeypatch):
    def fail(*_: object) -> None:
        raise KeyError("a fault of the operator")

    async def scenario() -> ControllerRun:
        run = ControllerRun(lambda request, body: None)
        with monkeypatch.context() as broken:
            broken.setattr(replica, "plan_replica", fail)
            await run.work(60)
        (error,) = run.transport.api.get("PodCliqueSet", "wl")["status"]["lastErrors"]
        assert error["description"].endswith("operator's log, cause: KeyError: 'a fault of the operator'")
        await run.work(300)
        return run

    run = run_in_virtual_time(scenario())
    assert set_errors(run) == [["ERR_PLAN_PODCLIQUESET_REPLICA"], []], "reported once, and cleared"


def test_deleted_set_leaves_no_record():
    """Also the records of replicas are dropped, whose objects were deleted before the set was gone."""

    async def scenario() -> ControllerRun:
        run = ControllerRun(lambda request, body: None, replicas=3)
        await run.work(30)
        assert len(run.controller.engine.states) == 4
        (stored,) = run.caches.sets
        run.caches.sets.apply_event("DELETED", replace(stored, metadata=replace(stored.metadata)))
        for cache in run.caches.replica_objects:
            cache.replace((), "1000000")
        await run.work(30)
        return run

    run = run_in_virtual_time(scenario())
    assert len(run.controller.engine.states) == 0


def test_status_is_published_although_plan_has_no_effect():
    """Another writer removes the Service again and again: its creation succeeds, and the status is true."""

    def accept(request: Request, body: Body) -> Response | None:
        if (request.verb, request.resource) != ("create", "services"):
            return None
        stored = {**body, "metadata": {**body["metadata"], "uid": "s", "resourceVersion": "1"}}
        return Response(201, {}, msgspec.json.encode(stored))

    async def scenario() -> ControllerRun:
        run = ControllerRun(accept)
        run.caches.services.apply_reply = lambda found: None  # type: ignore[method-assign]
        await run.work(30)
        return run

    run = run_in_virtual_time(scenario())
    assert 2 < len(run.transport.sent("create", "services")) < 20, "with back-off"
    assert [body for body in run.transport.sent("patch", "podcliques.grove.io") if "status" in body]


def test_force_deleted_pod_is_replaced_without_backoff():
    """The pod left the cache without having terminated: it is looked up, not found, and replaced at once."""

    async def scenario() -> tuple[ControllerRun, int]:
        run = ControllerRun(lambda request, body: None)
        await run.work(5)
        lost = next(iter(run.caches.pods))
        run.transport.api.delete("Pod", lost.metadata.name)
        run.transport.requests.clear()
        run.caches.pods.apply_event("DELETED", lost)
        await run.work(0.02)
        return run, len(run.transport.sent("create", "pods"))

    run, created = run_in_virtual_time(scenario())
    assert [request.verb for request, _ in run.transport.requests][:1] == ["patch"]
    assert created == 1
