"""The files of the page: read once at start, so that no path of a request is a path of the file system."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path

from aiohttp import hdrs, web
from msgspec import Struct

from grove import timing
from grove.dashboard.pages.errors import PageError
from grove.dashboard.server.answers import accepts_gzip, compressed

FOLDER = Path(__file__).parents[1] / "static"
INDEX = "index.html"
_TYPES = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}


class StaticFile(Struct, frozen=True):
    """One file. `etag` is of its content."""

    body: bytes
    packed: bytes
    content_type: str
    etag: str


def read_files(folder: Path = FOLDER) -> dict[str, StaticFile]:
    """All files that a page may load, by their path below the folder."""
    found = (each for each in sorted(folder.rglob("*")) if each.suffix in _TYPES and each.is_file())
    return {each.relative_to(folder).as_posix(): _read(each) for each in found}


def _read(path: Path) -> StaticFile:
    body = path.read_bytes()
    packed = compressed(body) if len(body) >= timing.COMPRESSED_ANSWER else b""
    return StaticFile(body, packed, _TYPES[path.suffix], hashlib.sha256(body).hexdigest()[:32])


def answer_file(request: web.Request, files: Mapping[str, StaticFile], name: str) -> web.Response:
    """A file, or that the client has it already. Raises PageError (404)."""
    file = files.get(name)
    if file is None:
        raise PageError(HTTPStatus.NOT_FOUND, "there is no such file: open the dashboard at /")
    headers: dict[str, str] = {
        hdrs.CACHE_CONTROL: "no-cache",
        hdrs.ETAG: f'"{file.etag}"',
        hdrs.VARY: hdrs.ACCEPT_ENCODING,
    }
    known = request.if_none_match or ()
    if any(each.value == file.etag for each in known):
        return web.Response(status=HTTPStatus.NOT_MODIFIED, headers=headers)
    body = file.body
    if file.packed and accepts_gzip(request):
        body, headers[hdrs.CONTENT_ENCODING] = file.packed, "gzip"
    return web.Response(body=body, content_type=file.content_type, charset="utf-8", headers=headers)
