"""Decodes AdmissionReview requests (admission.k8s.io/v1) and encodes the responses, for the reviewer."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

import msgspec
from msgspec import Raw, Struct

from grove import timing
from grove.api.json_depth import MAX_DEPTH, too_deep
from grove.webhooks import deep_value_path

API_VERSION = "admission.k8s.io/v1"
KIND = "AdmissionReview"
_NULL = Raw(b"null")


class InvalidReview(ValueError):
    """The body is not a review that can be answered; the message says why, in one line."""


class TooDeep(InvalidReview):
    """The object is nested too deeply to be decoded. The review has a UID, so that it can be answered."""

    def __init__(self, uid: str, why: str) -> None:
        super().__init__(why)
        self.uid = uid


class RequestResource(Struct, frozen=True):
    """Group, version and plural name of the requested resource."""

    group: str = ""
    version: str = ""
    resource: str = ""


class RequestUser(Struct, frozen=True):
    """The user of the request."""

    username: str = ""


class AdmissionRequest(Struct, frozen=True, rename="camel"):
    """One request that an API server wants to have reviewed."""

    uid: str
    operation: str
    resource: RequestResource = RequestResource()
    name: str = ""
    namespace: str = ""
    user_info: RequestUser = RequestUser()
    object: Raw = _NULL
    old_object: Raw = _NULL

    def new(self) -> dict[str, Any]:
        """The new object. Raises InvalidReview if there is none."""
        return _object(self.object, "request.object")

    def old(self) -> dict[str, Any]:
        """The stored object. Raises InvalidReview if there is none."""
        return _object(self.old_object, "request.oldObject")


class _Review(Struct, frozen=True, rename="camel"):
    api_version: str
    kind: str
    request: AdmissionRequest


_decoder = msgspec.json.Decoder(_Review)
_objects = msgspec.json.Decoder(dict[str, Any])
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"', re.DOTALL)


# How API servers begin a review. What follows cannot be trusted to be decodable if it nests too deeply.
_BEGINNING = re.compile(
    rb'\s*+{"kind":"AdmissionReview","apiVersion":"admission\.k8s\.io/v1","request":{"uid":"([0-9A-Za-z-]{1,64})"'
)


def read(body: bytes) -> AdmissionRequest:
    """The request in a review. Raises InvalidReview, or TooDeep."""
    if too_deep(body):
        raise _too_deep_error(body)
    try:
        review = _decoder.decode(body)
    except (msgspec.MsgspecError, ValueError) as problem:
        raise InvalidReview(f"not an {KIND} of {API_VERSION}: {_why(problem)}") from None
    if (review.api_version, review.kind) != (API_VERSION, KIND):
        found = f"{review.kind} of {review.api_version}"[:200]
        raise InvalidReview(f"not an {KIND} of {API_VERSION} but {found}")
    return review.request


def _object(raw: Raw, field: str) -> dict[str, Any]:
    if _values(bytes(raw)) > timing.OBJECT_VALUES:
        why = f"more than {timing.OBJECT_VALUES:,} values: divide it into several objects"
        raise InvalidReview(f"{field}: {why}")
    try:
        return _objects.decode(raw)
    except (msgspec.MsgspecError, ValueError) as problem:
        raise InvalidReview(f"{field}: {_why(problem)}") from None


def _values(raw: bytes) -> int:
    """About how many values a JSON document has. Most have few commas, so their strings are not searched."""
    commas = raw.count(b",")
    return commas if commas <= timing.OBJECT_VALUES else _STRING.sub(b"", raw).count(b",")


def _too_deep_error(body: bytes) -> InvalidReview:
    why = f"nested more than {MAX_DEPTH} levels deep"
    found = _BEGINNING.match(body)
    if found is None:
        return InvalidReview(f"not an {KIND} of {API_VERSION}: {why}")
    path = deep_value_path.find(body) or "the object"
    return TooDeep(found[1].decode(), f"{path}: {why}: reduce the nesting, or put it into a string")


def _why(problem: Exception) -> str:
    return str(problem)[:200]


def one_line(text: str) -> str:
    """Text for terminals and logs, with line ends and control sequences escaped: it may quote user input."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def allowed(uid: str, warnings: Sequence[str] = (), patch: Sequence[dict[str, Any]] = ()) -> bytes:
    """A response that allows the request, with a patch if there is one."""
    response: dict[str, Any] = {"uid": uid, "allowed": True, "status": {"code": HTTPStatus.OK}}
    if warnings:
        response["warnings"] = [one_line(warning) for warning in warnings]
    if patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(msgspec.json.encode(patch)).decode()
    return _answer(response)


def denied(
    uid: str, message: str, warnings: Sequence[str] = (), code: HTTPStatus = HTTPStatus.FORBIDDEN
) -> bytes:
    """A response that denies the request, with the message that the user gets."""
    status: dict[str, Any] = {"code": code, "message": one_line(message)}
    if code is HTTPStatus.FORBIDDEN:
        status["reason"] = "Forbidden"
    response: dict[str, Any] = {"uid": uid, "allowed": False, "status": status}
    if warnings:
        response["warnings"] = [one_line(warning) for warning in warnings]
    return _answer(response)


def _answer(response: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"apiVersion": API_VERSION, "kind": KIND, "response": response})
