"""Pins the base images of the Containerfile to their digests, for `make image-digests`.

Digests are asked of the registry that serves the image, by the API that all registries have in common; none
is written by hand. Without a connection the Containerfile stays as it is.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from email.message import Message
from http import HTTPStatus
from pathlib import Path
from urllib import error, parse, request

CONTAINERFILE = Path(__file__).resolve().parent.parent / "Containerfile"
_FROM = re.compile(r"^(FROM )([^\s@]+:[^\s@]+)(?:@\S+)?( AS \S+)$", re.MULTILINE)
_HUB, _HUB_API = "docker.io", "registry-1.docker.io"
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}").fullmatch
_INDEXES = (
    "application/vnd.oci.image.index.v1+json, application/vnd.docker.distribution.manifest.list.v2+json, "
    "application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json"
)
_PARAMETER = re.compile(r'(\w+)="([^"]*)"')
_SECONDS = 10.0


class Unresolved(Exception):
    """A digest could not be resolved; the message is one line with the image, the cause and a remedy."""


def base_images(containerfile: str) -> list[str]:
    """The images with a tag that stages of a Containerfile start from, each once."""
    return list(dict.fromkeys(found[1] for found in _FROM.findall(containerfile)))


def pinned(containerfile: str, digests: Mapping[str, str]) -> str:
    """The Containerfile with these digests."""
    return _FROM.sub(lambda found: f"{found[1]}{found[2]}@{digests[found[2]]}{found[3]}", containerfile)


def address(image: str) -> tuple[str, str, str]:
    """The registry, the repository and the tag of an image; without a registry in its name, it is of Docker
    Hub."""
    name, _, tag = image.rpartition(":")
    first, slash, rest = name.partition("/")
    if not slash or not ("." in first or ":" in first or first == "localhost"):
        first, rest = _HUB, name if slash else f"library/{name}"
    return (_HUB_API if first == _HUB else first), rest, tag


def resolve(image: str, scheme: str = "https") -> str:
    """The digest of an image. Raises Unresolved."""
    host, repository, tag = address(image)
    url = f"{scheme}://{host}/v2/{repository}/manifests/{tag}"
    try:
        found = _head(url) or _head(url, _token(url, repository)) or ""
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "reason", None) or problem
        raise Unresolved(
            f"{image}: {host} gives no digest ({reason}): run it where it is reachable"
        ) from None
    if not _DIGEST(found):
        raise Unresolved(f"{image}: {host} gives no digest: check the name and the tag")
    return found


def _head(url: str, token: str = "") -> str | None:
    """The digest of a manifest; None if a token is required."""
    authorization = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        return _open("HEAD", url, authorization)[0]["Docker-Content-Digest"] or ""
    except error.HTTPError as refused:
        if refused.code != HTTPStatus.UNAUTHORIZED or token:
            raise
        return None


def _token(url: str, repository: str) -> str:
    """A token to pull with, for which registries ask also where images are public."""
    try:
        _open("HEAD", url)
    except error.HTTPError as refused:
        asked = dict(_PARAMETER.findall(refused.headers.get("WWW-Authenticate", "")))
        query = {"service": asked.get("service", ""), "scope": f"repository:{repository}:pull"}
        _, body = _open("GET", f"{asked.get('realm', '')}?{parse.urlencode(query)}")
        given = json.loads(body)
        return str(given.get("token") or given.get("access_token") or "")
    return ""


def _open(method: str, url: str, headers: Mapping[str, str] | None = None) -> tuple[Message, bytes]:
    if not url.startswith(("https://", "http://")):  # it may come from a registry
        raise ValueError(f"{url} is no address of a web server")
    asked = request.Request(url, headers={"Accept": _INDEXES, **(headers or {})}, method=method)  # noqa: S310
    with request.urlopen(asked, timeout=_SECONDS) as reply:  # noqa: S310 - checked above
        return reply.headers, reply.read()


def main() -> int:
    containerfile = CONTAINERFILE.read_text(encoding="utf-8")
    try:
        digests = {image: resolve(image) for image in base_images(containerfile)}
    except Unresolved as problem:
        sys.stderr.write(f"{problem}\n")
        return 1
    CONTAINERFILE.write_text(pinned(containerfile, digests), encoding="utf-8")
    for image, digest in digests.items():
        sys.stdout.write(f"{image} {digest}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
