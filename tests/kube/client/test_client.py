"""The client on the wire: the requests it sends, how it decodes replies, and when it retries."""

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
from tests.kube.scripted_server import Answer, ScriptedServer, close_connection, failure, reply, serve

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
    created = await client.create(PODS, {"metadata": {"name": "a"}}, namespace="n", as_type=Object)
    assert created == Object(
        ObjectMeta(name="a", namespace="n", uid="u", resource_version="7"), api_version="v1", kind="Pod"
    )
    request = server.seen[0]
    assert (request.method, request.path_qs) == ("POST", "/api/v1/namespaces/n/pods")
    assert request.headers["Content-Type"] == "application/json"
    assert request.headers["Accept-Encoding"] == "identity"
    assert server.bodies == [b'{"metadata":{"name":"a"}}']


@pytest.mark.parametrize("body", [{"a": 1}, b'{"a":1}', Raw(b'{"a":1}'), msgspec.defstruct("A", ["a"])(1)])
async def test_body_may_be_mapping_bytes_raw_or_struct(
    server: ScriptedServer, client: Client, body: Raw | bytes | dict[str, int]
) -> None:
    server.script = [reply(POD)]
    await client.create(PODS, body, namespace="n", as_type=Raw)
    assert server.bodies == [b'{"a":1}']


async def test_reply_is_decoded_as_raw_or_mapping(server: ScriptedServer, client: Client) -> None:
    server.script = [reply(POD), reply(POD)]
    assert msgspec.json.decode(await client.get(PODS, "a", namespace="n", as_type=Raw)) == POD
    assert await client.get(PODS, "a", namespace="n", as_type=dict) == POD


async def test_reply_of_other_type_is_a_decode_error(server: ScriptedServer, client: Client) -> None:
    server.script = [reply({"metadata": 3})]
    with pytest.raises(errors.DecodeError, match="get pods n/a: the reply is not a Object"):
        await client.get(PODS, "a", namespace="n", as_type=Object)


async def test_apply_and_json_patch_have_their_content_type(server: ScriptedServer, client: Client) -> None:
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


async def test_apply_without_field_manager_is_rejected(client: Client) -> None:
    with pytest.raises(ValueError, match="field_manager"):
        await client.patch(PODS, "a", {}, namespace="n", kind=APPLY, as_type=Raw)


async def test_delete_returns_terminating_object_or_none(server: ScriptedServer, client: Client) -> None:
    server.script = [reply(GONE), reply(POD)]
    gone = await client.delete(PODS, "a", namespace="n", uid="u", propagation="Background", as_type=Object)
    terminating = await client.delete(PODS, "a", namespace="n", as_type=Object)
    assert gone is None
    assert terminating is not None
    assert terminating.metadata.uid == "u"
    assert msgspec.json.decode(server.bodies[0]) == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": "Background",
        "preconditions": {"uid": "u"},
    }
    assert server.bodies[1] == b""


async def test_scale_uses_the_subresource(server: ScriptedServer, client: Client) -> None:
    server.script = [reply({"metadata": {"name": "a"}, "spec": {"replicas": 3}, "status": {"replicas": 2}})]
    assert (await client.set_scale(PODS, "a", 3, namespace="n")).status.replicas == 2
    assert [request.path for request in server.seen] == ["/api/v1/namespaces/n/pods/a/scale"]
    assert server.bodies == [b'{"spec":{"replicas":3}}']


def page(names: str, continue_: str = "") -> Answer:
    items = [{"metadata": {"name": name}} for name in names]
    return reply({"metadata": {"resourceVersion": "9", "continue": continue_}, "items": items})


async def test_list_is_read_in_pages(server: ScriptedServer, client: Client) -> None:
    server.script = [page("ab", "next"), page("c")]
    listing = await client.list(PODS, namespace="n", labels="x=y", page=2, as_type=Object)
    assert [item.metadata.name for item in listing.items] == ["a", "b", "c"]
    assert listing.resource_version == "9"
    assert [request.query_string for request in server.seen] == [
        "labelSelector=x%3Dy&limit=2",
        "labelSelector=x%3Dy&limit=2&continue=next",
    ]


async def test_expired_continue_token_lists_without_pages(server: ScriptedServer, client: Client) -> None:
    server.script = [page("ab", "next"), failure(410, "Expired"), page("abc")]
    listing = await client.list(PODS, as_type=Object)
    assert [item.metadata.name for item in listing.items] == ["a", "b", "c"]
    assert server.seen[2].query_string == ""


async def test_list_skips_object_that_does_not_fit(server: ScriptedServer, client: Client) -> None:
    items = [
        {"metadata": {"name": "a"}},
        {"metadata": {"name": ["not", "text"]}},
        {"metadata": {"name": "c"}},
    ]
    server.script = [reply({"metadata": {}, "items": items})]
    listing = await client.list(PODS, as_type=Object)
    assert [item.metadata.name for item in listing.items] == ["a", "c"]


async def test_list_with_null_items_is_empty(server: ScriptedServer, client: Client) -> None:
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
async def test_error_has_type_and_status_of_the_reply(
    server: ScriptedServer,
    client: Client,
    code: int,
    reason: str,
    kind: type[errors.ApiError],
    ambiguous: bool,
) -> None:
    server.script = [failure(code, reason, "the\nserver's message", {"name": "a"})]
    with pytest.raises(errors.ApiError) as caught:
        await client.create(PODS, {}, namespace="n", as_type=Raw)
    assert type(caught.value) is kind
    assert caught.value.ambiguous is ambiguous
    assert (caught.value.code, caught.value.reason) == (code, reason)
    assert str(caught.value).startswith(f"create pods n: the server's message ({code}")
    assert "\n" not in str(caught.value)


async def test_reply_of_a_proxy_becomes_the_error_message(server: ScriptedServer, client: Client) -> None:
    server.script = [reply(b"<html>no</html>", 403)]
    with pytest.raises(errors.Forbidden, match="<html>no</html>"):
        await client.get(PODS, "a", namespace="n", as_type=Raw)


@pytest.mark.parametrize("fault", [close_connection, failure(500), failure(503), failure(504, "Timeout")])
async def test_read_is_retried_after_a_fault(server: ScriptedServer, client: Client, fault: Answer) -> None:
    server.script = [fault, reply(POD)]
    assert await client.get(PODS, "a", namespace="n", as_type=dict) == POD


@pytest.mark.parametrize("fault", [close_connection, failure(500), failure(503), failure(504, "Timeout")])
@pytest.mark.parametrize("verb", ["create", "patch", "replace", "delete"])
async def test_write_with_unknown_outcome_is_never_retried(
    server: ScriptedServer, client: Client, fault: Answer, verb: str
) -> None:
    calls = {
        "create": lambda: client.create(PODS, {}, namespace="n", as_type=Raw),
        "patch": lambda: client.patch(PODS, "a", {}, namespace="n", as_type=Raw),
        "replace": lambda: client.replace(PODS, "a", {}, namespace="n", as_type=Raw),
        "delete": lambda: client.delete(PODS, "a", namespace="n", as_type=Raw),
    }
    server.script = [reply(POD), fault, reply(POD)]
    await client.get(
        PODS, "warm", namespace="n", as_type=Raw
    )  # a kept connection, which aiohttp would retry on
    with pytest.raises(errors.KubeError) as caught:
        await calls[verb]()
    assert caught.value.ambiguous
    assert len(server.seen) == 2


async def test_write_is_retried_after_429_with_retry_after(
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


async def test_429_is_raised_if_repeated_or_pause_too_long(server: ScriptedServer, client: Client) -> None:
    server.script = [failure(429)] * 3
    with pytest.raises(errors.TooManyRequests, match="send fewer requests"):
        await client.create(PODS, {}, namespace="n", as_type=Raw)
    server.script = [failure(429, details={"retryAfterSeconds": 3600})]
    with pytest.raises(errors.TooManyRequests) as caught:
        await client.create(PODS, {}, namespace="n", as_type=Raw)
    assert caught.value.retry_after == 3600


async def test_raw_sends_to_any_path(server: ScriptedServer, client: Client) -> None:
    server.script = [reply("ok")]
    assert (await client.raw("GET", "/readyz?verbose")).body == b'"ok"'
    assert server.seen[0].path_qs == "/readyz?verbose"
