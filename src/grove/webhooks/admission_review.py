"""AdmissionReview, admission.k8s.io/v1: what an API server asks, and the forms of our answers."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

import msgspec
from msgspec import Raw, Struct

from grove.api.json_depth import MAX_DEPTH, too_deep
from grove.webhooks import deep_value_path

API_VERSION = "admission.k8s.io/v1"
KIND = "AdmissionReview"
_NULL = Raw(b"null")


class InvalidReview(ValueError):
    """What was sent cannot be answered; one line says why."""


class TooDeep(InvalidReview):
    """The object nests so deeply that it is not decoded. The review has a UID, so that it can be answered."""

    def __init__(self, uid: str, why: str) -> None:
        super().__init__(why)
        self.uid = uid


class RequestResource(Struct, frozen=True):
    """What the request is about, as the API server's URLs call it."""

    group: str = ""
    version: str = ""
    resource: str = ""


class RequestUser(Struct, frozen=True):
    """Who asks."""

    username: str = ""


class AdmissionRequest(Struct, frozen=True, rename="camel"):
    """One request that an API server asks about."""

    uid: str
    operation: str
    resource: RequestResource = RequestResource()
    name: str = ""
    namespace: str = ""
    user_info: RequestUser = RequestUser()
    object: Raw = _NULL
    old_object: Raw = _NULL

    def new(self) -> dict[str, Any]:
        """The object as it is to be. Raises NotAReview if there is none."""
        return _object(self.object, "request.object")

    def old(self) -> dict[str, Any]:
        """The object as it is stored. Raises NotAReview if there is none."""
        return _object(self.old_object, "request.oldObject")


class _Review(Struct, frozen=True, rename="camel"):
    api_version: str
    kind: str
    request: AdmissionRequest


_decoder = msgspec.json.Decoder(_Review)
_objects = msgspec.json.Decoder(dict[str, Any])


# How API servers begin a review. What follows cannot be trusted to be decodable if it nests too deeply.
_BEGINNING = re.compile(
    rb'\s*+{"kind":"AdmissionReview","apiVersion":"admission\.k8s\.io/v1","request":{"uid":"([0-9A-Za-z-]{1,64})"'
)


def read(body: bytes) -> AdmissionRequest:
    """The request in a review. Raises NotAReview, or TooDeep."""
    if too_deep(body):
        raise _refused(body)
    try:
        review = _decoder.decode(body)
    except (msgspec.MsgspecError, ValueError) as problem:
        raise InvalidReview(f"not an {KIND} of {API_VERSION}: {_why(problem)}") from None
    if (review.api_version, review.kind) != (API_VERSION, KIND):
        said = f"{review.kind} of {review.api_version}"[:200]
        raise InvalidReview(f"not an {KIND} of {API_VERSION} but {said}")
    return review.request


def _object(raw: Raw, field: str) -> dict[str, Any]:
    try:
        return _objects.decode(raw)
    except (msgspec.MsgspecError, ValueError) as problem:
        raise InvalidReview(f"{field}: {_why(problem)}") from None


def _refused(body: bytes) -> InvalidReview:
    why = f"nested more than {MAX_DEPTH} levels deep"
    found = _BEGINNING.match(body)
    if found is None:
        return InvalidReview(f"not an {KIND} of {API_VERSION}: {why}")
    place = deep_value_path.find(body) or "the object"
    return TooDeep(found[1].decode(), f"{place}: {why}: shorten it, or put it into a string")


def _why(problem: Exception) -> str:
    return str(problem)[:200]


def one_line(text: str) -> str:
    """Text for terminals and logs. It may quote what a user sent: line ends, control sequences."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def allowed(uid: str, warnings: Sequence[str] = (), patch: Sequence[dict[str, Any]] = ()) -> bytes:
    """Yes, with this patch if there is one."""
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
    """No, and why: what whoever wrote the object gets to read."""
    status: dict[str, Any] = {"code": code, "message": one_line(message)}
    if code is HTTPStatus.FORBIDDEN:
        status["reason"] = "Forbidden"
    response: dict[str, Any] = {"uid": uid, "allowed": False, "status": status}
    if warnings:
        response["warnings"] = [one_line(warning) for warning in warnings]
    return _answer(response)


def _answer(response: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"apiVersion": API_VERSION, "kind": KIND, "response": response})
