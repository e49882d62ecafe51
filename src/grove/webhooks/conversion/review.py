"""Answers ConversionReviews (apiextensions.k8s.io/v1): the objects in another version.

An API server that cannot convert one object of a kind can list none of them in that version. So every object
is answered: one that nests too deeply to be read gets the other version and keeps its spec, as without a
webhook.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec
from msgspec import Raw, Struct

from grove.api.json_depth import too_deep
from grove.dynamo.conversion.objects import VERSIONS, converted
from grove.logger import get_logger
from grove.webhooks.admission_review import InvalidReview, one_line
from grove.webhooks.computation import Compute, compute_here
from grove.webhooks.conversion.unread_objects import objects_in, with_api_version
from grove.webhooks.registrations import CONVERT_GRAPH

API_VERSION = "apiextensions.k8s.io/v1"
KIND = "ConversionReview"
log = get_logger("grove.webhooks")


class _Request(Struct, frozen=True, rename="camel"):
    uid: str
    desired_api_version: str = msgspec.field(name="desiredAPIVersion", default="")
    objects: tuple[Raw, ...] = ()


class _Review(Struct, frozen=True, rename="camel"):
    api_version: str
    kind: str
    request: _Request


_reviews = msgspec.json.Decoder(_Review)
_objects = msgspec.json.Decoder(dict[str, Any])


class ConversionReviewer:
    """Answers reviews; it needs nothing of the cluster, so it works before any cache is synced."""

    paths = (CONVERT_GRAPH,)

    async def answer(self, _path: str, body: bytes, compute: Compute = compute_here, /) -> bytes:
        """The response to a review. Raises InvalidReview only if the request has no UID to respond to."""
        return await compute(partial(_reviewed, body))


def _reviewed(body: bytes) -> bytes:
    request, objects = _read(body)
    version = VERSIONS.get(request.desired_api_version)
    if version is None:
        served = " or ".join(VERSIONS)
        return _failed(request.uid, f"desiredAPIVersion {request.desired_api_version!r}: not {served}")
    try:
        found = [_converted(each, version, request.desired_api_version) for each in objects]
    except ValueError as problem:
        return _failed(request.uid, str(problem))
    return _answer({"uid": request.uid, "convertedObjects": found, "result": {"status": "Success"}})


def _read(body: bytes) -> tuple[_Request, list[bytes]]:
    """The request, and its objects as text."""
    shallow, objects = (body, None) if not too_deep(body) else objects_in(body)
    try:
        review = _reviews.decode(shallow)
    except (msgspec.MsgspecError, ValueError) as problem:
        raise InvalidReview(f"not a {KIND} of {API_VERSION}: {str(problem)[:200]}") from None
    if (review.api_version, review.kind) != (API_VERSION, KIND):
        found = f"{review.kind} of {review.api_version}"[:200]
        raise InvalidReview(f"not a {KIND} of {API_VERSION} but {found}")
    return review.request, [bytes(each) for each in review.request.objects] if objects is None else objects


def _converted(text: bytes, version: str, api_version: str) -> Raw:
    """The object in another version. Raises ValueError if it is no object."""
    if too_deep(text):
        return Raw(with_api_version(text, api_version))
    try:
        body = _objects.decode(text)
    except (msgspec.MsgspecError, ValueError) as problem:
        raise ValueError(f"not an object: {str(problem)[:200]}") from None
    try:
        return Raw(msgspec.json.encode(converted(body, version)))
    except Exception:
        metadata = body.get("metadata")
        meta = metadata if isinstance(metadata, dict) else {}
        key = f"{meta.get('namespace')}/{meta.get('name')}"
        log.exception("not converted", key=key, action=api_version, reason="unexpected exception")
        return Raw(msgspec.json.encode({**body, "apiVersion": api_version}))


def _failed(uid: str, why: str) -> bytes:
    result = {"status": "Failed", "message": f"Grove: {one_line(why)}"}
    return _answer({"uid": uid, "convertedObjects": [], "result": result})


def _answer(response: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"apiVersion": API_VERSION, "kind": KIND, "response": response})
