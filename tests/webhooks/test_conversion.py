"""Reviews of the conversion webhook, and its registration in the CRD."""

from __future__ import annotations

import base64
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grove import timing
from grove.dynamo.conversion import objects
from grove.dynamo.conversion.objects import PRESERVED, converted
from grove.webhooks.admission_review import InvalidReview
from grove.webhooks.conversion.registration import conversion, is_foreign, is_ours
from grove.webhooks.conversion.review import ConversionReviewer
from grove.webhooks.registrations import (
    CONVERT_GRAPH,
    DEFAULT_GRAPH,
    ServiceAddress,
    UrlAddress,
    configurations,
)
from tests.dynamo.builders import alpha, component, deployment, service

REVIEWER = ConversionReviewer()
ALPHA, BETA = "nvidia.com/v1alpha1", "nvidia.com/v1beta1"


def review(*bodies: Any, to: str = BETA, **more: Any) -> bytes:
    request = {"uid": "1", "desiredAPIVersion": to, "objects": bodies}
    body = {"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1", "request": request}
    return msgspec.json.encode(body | more)


async def response(body: bytes) -> dict[str, Any]:
    answer = msgspec.json.decode(await REVIEWER.answer(CONVERT_GRAPH, body))
    assert (answer["kind"], answer["apiVersion"]) == ("ConversionReview", "apiextensions.k8s.io/v1")
    assert answer["response"]["uid"] == "1"
    return answer["response"]


async def test_all_objects_are_converted_in_order():
    bodies = [alpha(A=service()), alpha(B=service())]
    found = await response(review(*bodies))
    assert found["result"] == {"status": "Success"}
    assert found["convertedObjects"] == [converted(each, "v1beta1") for each in bodies]


async def test_unknown_version_fails_with_reason():
    found = await response(review(alpha(A=service()), to="nvidia.com/v1"))
    assert found["result"]["status"] == "Failed"
    assert "'nvidia.com/v1': not nvidia.com/v1alpha1 or nvidia.com/v1beta1" in found["result"]["message"]


async def test_value_that_is_no_object_fails_with_reason():
    found = await response(review(alpha(A=service()), 3))
    assert found["result"]["status"] == "Failed"
    assert "not an object" in found["result"]["message"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        review(kind="AdmissionReview"),
        b'{"request": ' + b"[" * 5000,
        b'{"request": {"objects": 1, "x": ' + b"[" * 5000 + b"]" * 5000 + b"}}",
        b'{"request": {"objects": [' + b"[" * 5000,
    ],
    ids=lambda body: str(body[:24]),
)
async def test_other_body_is_no_review(body):
    with pytest.raises(InvalidReview):
        await REVIEWER.answer(CONVERT_GRAPH, body)


def deep(levels: int) -> bytes:
    """An object whose unknown field nests deeply, and that has the apiVersion at several places."""
    body = alpha(A=service())
    body["metadata"]["annotations"] = {"apiVersion": "x", "quoted": 'a "apiVersion": "b" [[{'}
    text = msgspec.json.encode({**body, "more": "HERE"})
    return text.replace(b'"HERE"', b'{"apiVersion": "deep", "x": ' + b"[" * levels + b"]" * levels + b"}")


@pytest.mark.parametrize("levels", [250, 5000])
async def test_deep_object_gets_version_and_others_are_converted(levels):
    """A LIST of all objects must not fail because one of them nests deeply."""
    text = review("FIRST", "SECOND", deployment(component()))
    text = text.replace(b'"FIRST"', msgspec.json.encode(alpha(A=service()))).replace(
        b'"SECOND"', deep(levels)
    )
    raw = await REVIEWER.answer(CONVERT_GRAPH, text)
    assert deep(levels).replace(ALPHA.encode(), BETA.encode(), 1) in raw
    assert b'"status":"Success"' in raw
    assert msgspec.json.encode(converted(alpha(A=service()), "v1beta1")) in raw


@given(
    st.recursive(
        st.none() | st.booleans() | st.text(max_size=3),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=3), inner),
    )
)
async def test_fuzz_any_object_is_answered(value):
    body = {"apiVersion": ALPHA, "metadata": value, "spec": value, "status": value}
    found = await response(review(body))
    assert found["convertedObjects"][0]["apiVersion"] == BETA


async def test_bug_in_conversion_does_not_fail_a_list(monkeypatch):
    def fail(*_):
        raise KeyError("bug")

    monkeypatch.setitem(objects._PARTS, "spec", {"v1beta1": fail})
    found = await response(review(alpha(A=service())))
    assert found["convertedObjects"] == [{**alpha(A=service()), "apiVersion": BETA}]


async def test_large_object_is_converted():
    variables = [{"name": f"V{n}", "value": "x" * 100} for n in range(1500)]
    found = await response(review(alpha(A=service(envs=variables))))
    (main,) = found["convertedObjects"][0]["spec"]["components"][0]["podTemplate"]["spec"]["containers"]
    assert len(main["env"]) == 1500
    assert len(found["convertedObjects"][0]["metadata"]["annotations"][PRESERVED["v1alpha1"]]) > 150_000


def sidecar_first(args: list[str]) -> dict[str, Any]:
    """A component that v1alpha1 cannot express: there the main container is the first one."""
    found = component(main={"args": args})
    found["podTemplate"]["spec"]["containers"].insert(0, {"name": "x", "image": "y"})
    return found


@pytest.mark.parametrize(
    ("body", "to"),
    [
        (alpha(A=service(envs=[{"name": "V", "value": "x" * timing.MAX_ANNOTATIONS}])), BETA),
        (deployment(sidecar_first(["x" * timing.MAX_ANNOTATIONS])), ALPHA),
    ],
    ids=["alpha", "beta"],
)
async def test_object_with_too_much_to_preserve_is_readable(body, to):
    """The API server fails each LIST of a version in which one object has larger annotations than allowed."""
    body = {**body, "status": {"components" if to == ALPHA else "services": {"A": {"replicas": 1}}}}
    (found,) = (await response(review(body, to=to)))["convertedObjects"]
    assert found == {**body, "apiVersion": to}
    (back,) = (await response(review(found, to=body["apiVersion"])))["convertedObjects"]
    assert back == body


@pytest.mark.parametrize("address", [ServiceAddress("ns"), UrlAddress("https://127.0.0.1:1")])
def test_conversion_has_address_and_ca_of_defaulting_webhook(address):
    bodies = configurations(address, dynamo=True, ca_bundle=b"ca")
    (body,) = (each for each in bodies if each["metadata"]["name"] == DEFAULT_GRAPH.name)
    found = conversion(body["webhooks"][0]["clientConfig"])
    expected = address.client_config(CONVERT_GRAPH) | {"caBundle": base64.b64encode(b"ca").decode()}
    assert found["webhook"] == {"clientConfig": expected, "conversionReviewVersions": ["v1"]}
    assert is_ours(found)
    assert not is_foreign(found)


@pytest.mark.parametrize(
    "client",
    [
        {"service": {"namespace": "dynamo", "name": "webhook", "path": "/convert", "port": 443}},
        {"service": {"namespace": "dynamo", "name": "webhook"}},
        {"url": "https://example.com/convert"},
        {"url": "https://[::"},
        {},
    ],
    ids=str,
)
def test_conversion_of_another_operator_is_foreign(client):
    found = {"strategy": "Webhook", "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]}}
    assert is_foreign(found)


@pytest.mark.parametrize("found", [{}, {"strategy": "None"}])
def test_no_conversion_is_neither_ours_nor_foreign(found):
    assert not is_ours(found)
    assert not is_foreign(found)
