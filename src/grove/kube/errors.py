"""Errors of requests to the API server, one class for each reaction of the caller.

`ambiguous` answers the question after a failed write: did it take effect? False means that the server
certainly did not do it; True means that only a read can answer. Every `str()` is one line that a user can
act on.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from grove import timing
from grove.api.json_depth import too_deep


class StatusCause(Struct, frozen=True, gc=False):
    """One of the reasons in a Status: usually a field that validation or admission rejected."""

    reason: str = ""
    message: str = ""
    field: str = ""


class StatusDetails(Struct, frozen=True, gc=False, rename="camel"):
    """Which object a Status is about, and after how many seconds to retry."""

    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    retry_after_seconds: int = 0
    causes: tuple[StatusCause, ...] = ()


class ApiStatus(Struct, frozen=True, gc=False):
    """metav1.Status: the server's description of a failure (or of a finished delete)."""

    status: str = ""
    code: int = 0
    reason: str = ""
    message: str = ""
    details: StatusDetails | None = None


class KubeError(Exception):
    """Any failure of this package."""

    ambiguous = False


class ConfigError(KubeError):
    """The configuration of the connection is wrong, or its credentials cannot be read."""


class ConnectError(KubeError):
    """No connection could be opened, so the request was certainly not sent."""


class LostReply(KubeError):
    """The request was sent, or may have been, and no complete reply was received."""

    ambiguous = True


class NoAnswer(LostReply):
    """The request timed out. The server may still be working on it."""

    def __init__(self, message: str, seconds: float) -> None:
        super().__init__(message)
        self.seconds = seconds


class UnknownOutcome(KubeError):
    """A write got no answer, and the object could not be read either: it may have taken effect."""

    ambiguous = True


class DecodeError(KubeError):
    """The server's answer does not fit the type that the caller asked for; a write did take effect."""


class ApiError(KubeError):
    """The server answered with a failure; `status` is its description."""

    remedy = ""

    def __init__(self, action: str, status: ApiStatus, retry_after: float | None = None) -> None:
        self.action = action
        self.status = status
        self.retry_after = retry_after
        super().__init__(action, status, retry_after)

    @property
    def code(self) -> int:
        """The HTTP status code."""
        return self.status.code

    @property
    def reason(self) -> str:
        """The server's machine-readable reason, such as `AlreadyExists`."""
        return self.status.reason

    def __str__(self) -> str:
        message = " ".join(self.status.message.split()) or "the server gave no reason"
        line = f"{self.action}: {message} ({self.code} {self.reason})".replace(" )", ")")
        return f"{line}; {self.remedy}" if self.remedy else line


class BadRequest(ApiError):
    """400: the request itself is malformed."""


class Unauthorized(ApiError):
    """401: the server does not accept the credentials."""

    remedy = "renew the credentials in the kubeconfig, or check that the service account still exists"


class Forbidden(ApiError):
    """403: the server accepts the credentials and denies the request (by role, quota or policy)."""


class NotFound(ApiError):
    """404: no such object, or no such resource."""


class MethodNotAllowed(ApiError):
    """405: the resource has no such verb."""


class AlreadyExists(ApiError):
    """409 on create: an object with the name exists. Its metadata name its owner (see `name_conflict`)."""


class Conflict(ApiError):
    """409: the object changed since it was read, or a precondition failed."""


class Gone(ApiError):
    """410: the resourceVersion or the continue token is too old; list again from the start."""


class TooLarge(ApiError):
    """413: the object is larger than the server accepts."""


class UnsupportedMediaType(ApiError):
    """415: this resource does not support this kind of patch."""


class Invalid(ApiError):
    """422: the object violates a rule of its schema or of admission."""


class TooManyRequests(ApiError):
    """429: not done; retry after `retry_after` seconds."""

    remedy = "the server is shedding load: retry later, or send fewer requests at once"


class ServerError(ApiError):
    """5xx: the server failed. A write may have reached storage before that."""

    ambiguous = True


class InternalError(ServerError):
    """500."""


class ServiceUnavailable(ServerError):
    """503: the server starts or stops, or a webhook or an aggregated API behind it is not available."""


class ServerTimeout(ServerError):
    """504: the server gave up waiting; the write may still take effect."""


_BY_CODE: dict[int, type[ApiError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    405: MethodNotAllowed,
    409: Conflict,
    410: Gone,
    413: TooLarge,
    415: UnsupportedMediaType,
    422: Invalid,
    429: TooManyRequests,
    500: InternalError,
    503: ServiceUnavailable,
    504: ServerTimeout,
}
_BY_REASON: dict[str, type[ApiError]] = {
    "AlreadyExists": AlreadyExists,
    "Expired": Gone,
    "Gone": Gone,
    # A create can fail with 500/ServerTimeout although nothing is wrong with it: etcd was slow.
    "ServerTimeout": ServerTimeout,
    "Timeout": ServerTimeout,
}


_status_decoder = msgspec.json.Decoder(ApiStatus)


def read_status(body: bytes, code: int) -> ApiStatus:
    """The Status in a reply, or one built from the code if a proxy answered with something else."""
    try:
        status = ApiStatus() if too_deep(body) else _status_decoder.decode(body)
    except (msgspec.MsgspecError, ValueError):
        status = ApiStatus(message=body[:200].decode("utf-8", "replace"))
    return status if status.code else msgspec.structs.replace(status, code=code)


def api_error(action: str, status: ApiStatus, retry_after: float | None = None) -> ApiError:
    """The typed error for a Status; the reason decides before the code does."""
    fallback = ServerError if status.code >= 500 else ApiError
    kind = _BY_REASON.get(status.reason) or _BY_CODE.get(status.code, fallback)
    if retry_after is None and status.details and status.details.retry_after_seconds:
        retry_after = float(min(status.details.retry_after_seconds, timing.MAX_RETRY_AFTER))
    return kind(action, status, retry_after)


def is_namespace_terminating(error: BaseException | None) -> bool:
    """Whether the namespace is terminating or gone, so that it accepts no new objects. That is final."""
    if not isinstance(error, Forbidden | NotFound) or error.status.details is None:
        return False
    details = error.status.details
    gone = isinstance(error, NotFound) and details.kind == "namespaces"
    return gone or any(cause.reason == "NamespaceTerminating" for cause in details.causes)
