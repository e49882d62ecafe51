"""The client's contract on the wire: what it sends, what it makes of answers, when it tries again."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec
import pytest
from msgspec import Raw

from grove.api.meta import ObjectMeta
from grove.kube import errors
from grove.kube.client.client import APPLY, JSON, Client, Object
from grove.kube.client.resource import PODS
from grove.kube.client.retry import Backoff, RetryPolicy
from tests.kube.scripted_server import Answer, ScriptedServer, failure, hang_up, reply, serve

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "7"},
}
GONE = {"kind": "Status", "apiVersion": "v1", "status": "Success", "details": {"name": "a", "uid": "u"}}
FAST = RetryPolicy(attempts=3, backoff=Backoff(first=0.001, longest=0.002))


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with serve() as running:
        yield running


@pytest.fixture
async def client(server: ScriptedServer) -> AsyncIterator[Client]:
    async with Client(server.config(), retry=FAST) as ready:
        yield ready


async def test_create_sends_the_body_and_decodes_the_reply(server: ScriptedServer, client: Client) -> None:
    server.script = [reply(POD, 201)]
    made = await client.create(PODS, {"metadata": {"name": "a"}}, namespace="n", as_type=Object)
    assert made == Object(
        ObjectMeta(name="a", namespace="n", uid="u", resource_version="7"), api_version="v1", kind="Pod"
    )
    asked = server.seen[0]
    assert (asked.method, asked.path_qs) == ("POST", "/api/v1/namespaces/n/pods")
    assert asked.headers["Content-Type"] == "application/json"
    assert asked.headers["Accept-Encoding"] == "identity"
    assert server.bodies == [b'{"metadata":{"name":"a"}}']


@pytest.mark.parametrize("body", [{"a": 1}, b'{"a":1}', Raw(b'{"a":1}'), msgspec.defstruct("A", ["a"])(1)])
async def test_a_body_may_be_a_mapping_bytes_raw_or_struct(
    server: ScriptedServer, client: Client, body: Raw | bytes | dict[str, int]
) -> None:
    server.script = [reply(POD)]
    await client.create(PODS, body, namespace="n", as_type=Raw)
    assert server.bodies == [b'{"a":1}']


async def test_a_reply_is_had_raw_as_mapping_or_typed(server: ScriptedServer, client: Client) -> None:
    server.script = [reply(POD), reply(POD)]
    assert msgspec.json.decode(await client.get(PODS, "a", namespace="n", as_type=Raw)) == POD
    assert await client.get(PODS, "a", namespace="n", as_type=dict) == POD


async def test_a_reply_of_another_shape_is_a_decode_error(server: ScriptedServer, client: Client) -> None:
    server.script = [reply({"metadata": 3})]
    with pytest.raises(errors.DecodeError, match="get pods n/a: the reply is not a Object"):
        await client.get(PODS, "a", namespace="n", as_type=Object)


async def test_apply_and_json_patch_are_told_apart_by_content_type(
    server: ScriptedServer, client: Client
) -> None:
    server.script = [reply(POD), reply(POD)]
    await client.patch(
        PODS,
        "a",
        {},
        namespace="n",
        kind=APPLY,
        field_manager="me",
        force=True,
        subresource="status",
        as_type=Raw,
    )
    await client.patch(PODS, "a", [{"op": "test"}], namespace="n", kind=JSON, as_type=Raw)
    apply, json_patch = server.seen
    assert apply.path_qs == "/api/v1/namespaces/n/pods/a/status?fieldManager=me&force=true"
    assert apply.headers["Content-Type"] == "application/apply-patch+yaml"
    assert json_patch.headers["Content-Type"] == "application/json-patch+json"
    assert server.bodies[1] == b'[{"op":"test"}]'


async def test_apply_without_a_field_manager_is_refused_before_it_is_sent(client: Client) -> None:
    with pytest.raises(ValueError, match="field_manager"):
        await client.patch(PODS, "a", {}, namespace="n", kind=APPLY, as_type=Raw)


async def test_delete_tells_gone_from_terminating(server: ScriptedServer, client: Client) -> None:
    server.script = [reply(GONE), reply(POD)]
    gone = await client.delete(PODS, "a", namespace="n", uid="u", propagation="Background", as_type=Object)
    still_there = await client.delete(PODS, "a", namespace="n", as_type=Object)
    assert gone is None
    assert still_there is not None
    assert still_there.metadata.uid == "u"
    assert msgspec.json.decode(server.bodies[0]) == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": "Background",
        "preconditions": {"uid": "u"},
    }
    assert server.bodies[1] == b""


async def test_delete_collection_names_its_labels(server: ScriptedServer, client: Client) -> None:
    server.script = [reply(GONE)]
    await client.delete_collection(PODS, namespace="n", labels={"a": "b", "c": "d"}, grace_seconds=0)
    assert server.seen[0].path_qs == "/api/v1/namespaces/n/pods?labelSelector=a%3Db%2Cc%3Dd"
    assert msgspec.json.decode(server.bodies[0])["gracePeriodSeconds"] == 0


async def test_scale_goes_through_the_subresource(server: ScriptedServer, client: Client) -> None:
    server.script = [
        reply({"metadata": {"name": "a"}, "spec": {"replicas": 3}, "status": {"replicas": 2}})
    ] * 2
    assert (await client.get_scale(PODS, "a", namespace="n")).spec.replicas == 3
    assert (await client.set_scale(PODS, "a", 3, namespace="n")).status.replicas == 2
    assert [request.path for request in server.seen] == ["/api/v1/namespaces/n/pods/a/scale"] * 2
    assert server.bodies[1] == b'{"spec":{"replicas":3}}'


def page(names: str, continue_: str = "") -> Answer:
    items = [{"metadata": {"name": name}} for name in names]
    return reply({"metadata": {"resourceVersion": "9", "continue": continue_}, "items": items})


async def test_a_list_is_read_in_pages(server: ScriptedServer, client: Client) -> None:
    server.script = [page("ab", "next"), page("c")]
    listing = await client.list(PODS, namespace="n", labels="x=y", page=2, as_type=Object)
    assert [item.metadata.name for item in listing.items] == ["a", "b", "c"]
    assert listing.resource_version == "9"
    assert [request.query_string for request in server.seen] == [
        "labelSelector=x%3Dy&limit=2",
        "labelSelector=x%3Dy&limit=2&continue=next",
    ]


async def test_an_expired_page_starts_the_list_again_in_one_piece(
    server: ScriptedServer, client: Client
) -> None:
    server.script = [page("ab", "next"), failure(410, "Expired"), page("abc")]
    listing = await client.list(PODS, as_type=Object)
    assert [item.metadata.name for item in listing.items] == ["a", "b", "c"]
    assert server.seen[2].query_string == ""


async def test_a_list_skips_the_object_that_does_not_fit(server: ScriptedServer, client: Client) -> None:
    items = [
        {"metadata": {"name": "a"}},
        {"metadata": {"name": ["not", "text"]}},
        {"metadata": {"name": "c"}},
    ]
    server.script = [reply({"metadata": {}, "items": items})]
    listing = await client.list(PODS, as_type=Object)
    assert [item.metadata.name for item in listing.items] == ["a", "c"]


async def test_a_list_of_nothing_is_empty(server: ScriptedServer, client: Client) -> None:
    server.script = [reply({"metadata": {"resourceVersion": "1"}, "items": None})]
    assert (await client.list(PODS, as_type=Object)).items == []


@pytest.mark.parametrize(
    ("code", "reason", "kind", "ambiguous"),
    [
        (400, "BadRequest", errors.BadRequest, False),
        (401, "Unauthorized", errors.Unauthorized, False),
        (403, "Forbidden", errors.Forbidden, False),
        (404, "NotFound", errors.NotFound, False),
        (405, "MethodNotAllowed", errors.MethodNotAllowed, False),
        (409, "AlreadyExists", errors.AlreadyExists, False),
        (409, "Conflict", errors.Conflict, False),
        (410, "Expired", errors.Gone, False),
        (410, "Gone", errors.Gone, False),
        (413, "RequestEntityTooLarge", errors.TooLarge, False),
        (415, "UnsupportedMediaType", errors.UnsupportedMediaType, False),
        (422, "Invalid", errors.Invalid, False),
        (500, "InternalError", errors.InternalError, True),
        (500, "ServerTimeout", errors.ServerTimeout, True),
        (502, "", errors.ServerError, True),
        (503, "ServiceUnavailable", errors.ServiceUnavailable, True),
        (504, "Timeout", errors.ServerTimeout, True),
    ],
)
async def test_a_refusal_carries_the_servers_status(
    server: ScriptedServer,
    client: Client,
    code: int,
    reason: str,
    kind: type[errors.ApiError],
    ambiguous: bool,
) -> None:
    server.script = [failure(code, reason, "the\nserver's words", {"name": "a"})]
    with pytest.raises(errors.ApiError) as caught:
        await client.create(PODS, {}, namespace="n", name="", as_type=Raw)
    assert type(caught.value) is kind
    assert caught.value.ambiguous is ambiguous
    assert (caught.value.code, caught.value.reason) == (code, reason)
    assert str(caught.value).startswith(f"create pods n: the server's words ({code}")
    assert "\n" not in str(caught.value)


async def test_a_proxys_own_words_become_a_status(server: ScriptedServer, client: Client) -> None:
    server.script = [reply(b"<html>no</html>", 403)]
    with pytest.raises(errors.Forbidden, match="<html>no</html>"):
        await client.get(PODS, "a", namespace="n", as_type=Raw)


@pytest.mark.parametrize("fault", [hang_up, failure(500), failure(503), failure(504, "Timeout")])
async def test_a_read_is_repeated_after_a_fault(
    server: ScriptedServer, client: Client, fault: Answer
) -> None:
    server.script = [fault, reply(POD)]
    assert await client.get(PODS, "a", namespace="n", as_type=dict) == POD


@pytest.mark.parametrize("fault", [hang_up, failure(500), failure(503), failure(504, "Timeout")])
@pytest.mark.parametrize("verb", ["create", "patch", "replace", "delete", "delete_collection"])
async def test_a_write_whose_outcome_is_unknown_is_never_repeated(
    server: ScriptedServer, client: Client, fault: Answer, verb: str
) -> None:
    calls = {
        "create": lambda: client.create(PODS, {}, namespace="n", as_type=Raw),
        "patch": lambda: client.patch(PODS, "a", {}, namespace="n", as_type=Raw),
        "replace": lambda: client.replace(PODS, "a", {}, namespace="n", as_type=Raw),
        "delete": lambda: client.delete(PODS, "a", namespace="n", as_type=Raw),
        "delete_collection": lambda: client.delete_collection(PODS, namespace="n", labels=""),
    }
    server.script = [reply(POD), fault, reply(POD)]
    await client.get(
        PODS, "warm", namespace="n", as_type=Raw
    )  # a kept connection, which aiohttp would retry on
    with pytest.raises(errors.KubeError) as caught:
        await calls[verb]()
    assert caught.value.ambiguous
    assert len(server.seen) == 2


async def test_a_write_answered_with_429_is_sent_again_after_the_time_asked_for(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses = []

    async def record(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr("grove.kube.client.rest.asyncio.sleep", record)
    server.script = [failure(429, "TooManyRequests", Retry_After="7"), reply(POD, 201)]
    async with Client(server.config(), retry=FAST) as client:
        await client.create(PODS, {}, namespace="n", as_type=Raw)
    assert len(pauses) == 1
    assert 7 <= pauses[0] < 7.1


async def test_429_is_raised_when_it_goes_on_or_asks_for_too_long(
    server: ScriptedServer, client: Client
) -> None:
    server.script = [failure(429)] * 3
    with pytest.raises(errors.TooManyRequests, match="send fewer requests"):
        await client.create(PODS, {}, namespace="n", as_type=Raw)
    server.script = [failure(429, details={"retryAfterSeconds": 3600})]
    with pytest.raises(errors.TooManyRequests) as caught:
        await client.create(PODS, {}, namespace="n", as_type=Raw)
    assert caught.value.retry_after == 3600


async def test_raw_reaches_any_path(server: ScriptedServer, client: Client) -> None:
    server.script = [reply("ok")]
    assert (await client.raw("GET", "/readyz?verbose")).body == b'"ok"'
    assert server.seen[0].path_qs == "/readyz?verbose"
