"""One pass over a key, with a server that refuses: what is told then, and what is tried again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from grove.api.intents import EventRecord
from grove.api.naming import labels
from grove.api.types.kubernetes_objects import ResourceClaimTemplateObject
from grove.kube.client.transport import Request, Response
from grove.kube.executor.cache_store import CacheStore
from grove.kube.executor.executor import Executor
from grove.kube.testing.virtual_time import run_in_virtual_time
from grove.operator.caches.registry import Caches
from grove.operator.controller import Controller
from tests.plan.builders import a_clique, a_set, read_set
from tests.plan.simulator.api_server import ApiServer, Conflict, NotFound

KINDS = {
    "podcliquesets": "PodCliqueSet",
    "podcliques": "PodClique",
    "podgangs": "PodGang",
    "services": "Service",
    "pods": "Pod",
    "resourceclaims": "ResourceClaim",
}
CLIQUE = ("wl", 0, "wl-0-a", "a", "wl-0", "hash")
Body = dict[str, Any]
Refusal = Callable[[Request, Body], Response | None]


def refusal(code: int, reason: str, **details: Any) -> Response:
    status = {"kind": "Status", "code": code, "reason": reason, "message": "no", "details": details}
    return Response(code, {}, msgspec.json.encode(status))


def no_quota() -> Response:
    return refusal(403, "Forbidden")


def namespace_terminating() -> Response:
    cause = {"reason": "NamespaceTerminating", "message": "no", "field": "metadata.namespace"}
    return refusal(403, "Forbidden", causes=[cause])


class RefusingTransport:
    """Does what it is asked to, but for what it refuses."""

    def __init__(self, refuse: Refusal) -> None:
        self.refuse, self.api = refuse, ApiServer(lambda: "2026-01-01T00:00:00Z")
        self.requests: list[tuple[Request, Body]] = []

    async def send(self, request: Request) -> Response:
        body: Body = msgspec.json.decode(request.body) if request.body else {}
        self.requests.append((request, body))
        if refused := self.refuse(request, body):
            return refused
        kind = KINDS[request.resource.partition(".")[0]]
        try:
            stored = self._do(request, kind, body)
        except Conflict:
            return refusal(409, "Conflict")
        except NotFound:
            return refusal(404, "NotFound", name=request.name)
        return Response(200, {}, msgspec.json.encode(stored))

    def _do(self, request: Request, kind: str, body: Body) -> Body:
        if request.verb == "create":
            return self.api.create(body)
        if request.verb == "patch":
            status = "/status" in request.path
            return self.api.patch(kind, request.name, body, status=status)
        assert request.verb == "get", request
        return self.api.get(kind, request.name)

    def sent(self, verb: str, resource: str) -> list[Body]:
        return [
            body for request, body in self.requests if (request.verb, request.resource) == (verb, resource)
        ]

    def stream(self, request: Request) -> Any:
        raise AssertionError("nobody watches")

    async def close(self) -> None: ...


class ControllerRun:
    """A controller that works on one set, of `a:2` if nothing else is said, for as long as a test lets it."""

    def __init__(self, refuse: Refusal, replicas: int = 1, cliques: str = "a:2", **template: Any) -> None:
        self.transport, self.caches = RefusingTransport(refuse), Caches()
        self.emitted: list[EventRecord] = []
        executor = Executor(self.transport, self.caches.resources, store=CacheStore(self.caches.all))
        self.controller = Controller(self.caches, executor, self.emitted.append)
        body = a_set(cliques, replicas=replicas, **template)
        self.caches.sets.apply_event("ADDED", read_set(self.transport.api.create(body)))

    async def work(self, seconds: float) -> None:
        self.controller.queue.start()
        await asyncio.sleep(seconds)
        await self.controller.queue.stop()


def test_what_failed_is_told_although_the_plan_was_outdated_as_well():
    """One pod is refused, and the gang has changed since we looked: the user waits for the first of these."""

    async def play() -> list[Body]:
        pods: set[str] = set()

        def refuse(request: Request, body: Body) -> Response | None:
            if request.verb == "create" and request.resource == "pods":
                pods.add(body["metadata"]["name"])
                return no_quota() if body["metadata"]["name"] == min(pods) else refusal(409, "Conflict")
            return refusal(404, "NotFound") if request.verb == "get" else None

        run = ControllerRun(refuse)
        await run.work(5)
        return run.transport.sent("patch", "podcliques.grove.io")

    said = [body["status"].get("lastErrors") for body in run_in_virtual_time(play()) if "status" in body]
    assert [error["code"] for errors in said[:1] for error in errors] == ["ERR_CREATE_POD"]


def test_in_a_namespace_that_ends_nothing_is_tried_twice_and_no_tales_are_told():
    def refuse(request: Request, body: Body) -> Response | None:
        return namespace_terminating() if (request.verb, request.resource) == ("create", "pods") else None

    async def play() -> ControllerRun:
        run = ControllerRun(refuse, replicas=2)
        await run.work(600)
        return run

    run = run_in_virtual_time(play())
    names = [body["metadata"]["name"] for body in run.transport.sent("create", "pods")]
    assert len(names) == len(set(names)) == 4
    assert run.emitted == []
    statuses = [body["status"] for body in run.transport.sent("patch", "podcliques.grove.io")]
    errors = [status["lastErrors"] for status in statuses if "lastErrors" in status]
    told = [[error["code"] for error in said] for said in errors]
    assert told == [["ERR_CREATE_POD"]] * 2, "told once of each clique, and never taken back"


def test_a_refusal_is_logged_once_however_often_it_is_tried_again():
    """Of two pods with one trouble, over half an hour."""

    def refuse(request: Request, body: Body) -> Response | None:
        return no_quota() if (request.verb, request.resource) == ("create", "pods") else None

    async def play() -> ControllerRun:
        run = ControllerRun(refuse)
        await run.work(1800)
        return run

    with capture_logs() as said:
        run = run_in_virtual_time(play())
    assert len(run.transport.sent("create", "pods")) > 2
    (line,) = (line for line in said if line["event"] == "refused")
    assert (line["log_level"], line["key"], line["action"]) == ("warning", "ns/wl/0", "retry")
    assert "could not create pods of wl-0-a" in line["reason"]


def test_a_namespace_that_ends_and_a_server_that_is_not_well_are_no_refusals():
    asked: list[str] = []

    def refuse(request: Request, body: Body) -> Response | None:
        if (request.verb, request.resource) == ("create", "pods"):
            return namespace_terminating()
        asked.append(request.resource)
        return refusal(503, "ServiceUnavailable") if asked.count(request.resource) == 1 else None

    async def play() -> None:
        await ControllerRun(refuse).work(600)

    with capture_logs() as said:
        run_in_virtual_time(play())
    assert len(asked) > len(set(asked)), "asked again"
    assert [line for line in said if line["event"] == "refused"] == []


def test_what_was_refused_elsewhere_is_tried_again():
    def refuse(request: Request, body: Body) -> Response | None:
        return no_quota() if (request.verb, request.resource) == ("create", "pods") else None

    async def play() -> ControllerRun:
        run = ControllerRun(refuse)
        await run.work(600)
        return run

    run = run_in_virtual_time(play())
    assert 6 <= len(run.transport.sent("create", "pods")) < 100, "ever more seldom"
    assert run.emitted


def waiting(replicas: int) -> ControllerRun:
    """A set that shares what nobody has made a template for."""
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
    """What the set said of errors, whenever that changed."""
    sent = run.transport.sent("patch", "podcliquesets.grove.io")
    said = [body["status"]["lastErrors"] for body in sent if "lastErrors" in body.get("status", {})]
    return [[error["code"] for error in errors or ()] for errors in said]


def test_a_trouble_of_the_set_itself_is_told_once_and_taken_back_when_it_is_over():
    """A template that is missing: nothing fails, nothing is tried, and the set says what it waits for."""

    async def play() -> ControllerRun:
        run = waiting(replicas=1)
        await run.work(60)
        assert run.transport.sent("create", "pods") == []
        add_claim_template(run)
        await run.work(60)
        return run

    run = run_in_virtual_time(play())
    assert len(run.transport.sent("create", "resourceclaims.resource.k8s.io")) == 1
    assert len(run.transport.sent("create", "pods")) == 2
    assert set_errors(run) == [["ERR_SYNC_PCS_RESOURCE_CLAIM"], []]


def test_a_trouble_is_told_even_if_nothing_else_is_news():
    async def play() -> ControllerRun:
        run = waiting(replicas=0)
        add_claim_template(run)
        await run.work(5)
        assert set_errors(run) == []
        run.caches.claim_templates.clear()
        await run.work(5)
        return run

    assert set_errors(run_in_virtual_time(play())) == [["ERR_SYNC_PCS_RESOURCE_CLAIM"]]


def observed(run: ControllerRun, kind: str) -> set[str]:
    """Who says that what was asked of it has been done."""
    found = run.transport.api.objects(kind)
    return {body["metadata"]["name"] for body in found if body.get("status", {}).get("observedGeneration")}


def test_who_has_all_that_it_needs_says_so_whatever_its_neighbour_lacks():
    def refuse(request: Request, body: Body) -> Response | None:
        creates_pod = (request.verb, request.resource) == ("create", "pods")
        return no_quota() if creates_pod and body["metadata"]["name"].startswith("wl-0-b-") else None

    async def play() -> ControllerRun:
        run = ControllerRun(refuse, cliques="a:2 b:2")
        await run.work(60)
        return run

    assert observed(run_in_virtual_time(play()), "PodClique") == {"wl-0-a"}


def test_a_set_that_waits_for_the_end_of_its_predecessor_has_not_done_what_it_was_asked():
    """Of the clique that has the name nobody takes off the last finalizer, and nothing fails meanwhile."""
    owner = {"kind": "PodCliqueSet", "name": "wl", "uid": "before", "controller": True}
    metadata = {"name": "wl-0-a", "namespace": "ns", "uid": "old", "resourceVersion": "1"}
    leaving = {"deletionTimestamp": "2026-01-01T00:00:00Z", "labels": labels.for_clique(*CLIQUE)}
    references = {"ownerReferences": [{"apiVersion": "grove.io/v1alpha1", **owner}]}
    old = {"metadata": {**metadata, **leaving, **references}, "spec": a_clique("a:2")["spec"]}

    def refuse(request: Request, body: Body) -> Response | None:
        if request.resource != "podcliques.grove.io":
            return None
        if request.verb == "get":
            return Response(200, {}, msgspec.json.encode(old))
        return refusal(409, "AlreadyExists", name="wl-0-a")

    async def play() -> ControllerRun:
        run = ControllerRun(refuse)
        await run.work(60)
        return run

    run = run_in_virtual_time(play())
    assert not run.transport.sent("create", "pods")
    assert observed(run, "PodCliqueSet") == set()
    assert set_errors(run) == []


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (
            {"podCliqueScalingGroups": [{"name": "x", "cliqueNames": ["nobody"]}]},
            "podCliqueScalingGroups refers to clique nobody, which does not exist",
        ),
        ({"terminationDelay": "soon"}, '"soon" is not a duration such as "4h0m0s" or "90s"'),
    ],
)
def test_what_no_plan_can_be_made_of_is_told_and_stops_nobody_else(wrong, words):
    """The webhooks refuse such sets; they may have been away, or not have known the rule."""

    async def play() -> ControllerRun:
        run = ControllerRun(lambda request, body: None, **wrong)
        other = run.transport.api.create(a_set("a:2", name="other"))
        run.caches.sets.apply_event("ADDED", read_set(other))
        await run.work(300)
        body = run.transport.api.get("PodCliqueSet", "wl")
        (error,) = body["status"]["lastErrors"]
        assert error["description"].endswith(f"operator's log, cause: {words}")
        mended = {"spec": {"template": dict.fromkeys(wrong)}}
        run.caches.sets.apply_event(
            "MODIFIED", read_set(run.transport.api.patch("PodCliqueSet", "wl", mended))
        )
        await run.work(60)
        return run

    run = run_in_virtual_time(play())
    made = [body["metadata"]["name"] for body in run.transport.sent("create", "pods")]
    assert sum(name.startswith("other-0-a-") for name in made) == 2
    assert sum(name.startswith("wl-0-a-") for name in made) == 2
    assert set_errors(run) == [["ERR_PLAN_PODCLIQUESET_REPLICA"], []], "told once, and taken back"
