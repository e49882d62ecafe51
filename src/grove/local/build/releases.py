"""Downloads official releases and verifies their checksums.

Kubernetes publishes a `.sha256` file for each binary, etcd one list per release, and GitHub's API has the
digests of KWOK's files. A file with another checksum is rejected and never reaches the cache. GROVE_MIRROR
names a mirror, with the host as first folder: `$GROVE_MIRROR/dl.k8s.io/v1.37.1/bin/linux/amd64/kubectl`.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from grove.local.build.versions import Program
from grove.local.errors import LocalError
from grove.local.progress import Task

_TIMEOUT = 10.0
_CHUNK = 1 << 20


class ReleaseUnavailable(Exception):
    """The release is unavailable: no network, or no file for this platform."""


@dataclass(frozen=True, slots=True)
class Asset:
    """A published file, and the file that holds its checksum."""

    url: str
    checksums: str
    read_checksum: Callable[[bytes, str], str | None]

    @property
    def name(self) -> str:
        return self.url.rpartition("/")[2]


def asset(part: Program, system: str, architecture: str, environ: Mapping[str, str] = os.environ) -> Asset:
    """The published file of a program."""
    mirror = environ.get("GROVE_MIRROR", "").rstrip("/")
    base = mirror or "https:/"
    platform = f"{system}-{architecture}"
    if part.release == "kubernetes":
        url = f"{base}/dl.k8s.io/v{part.version}/bin/{system}/{architecture}/{part.name}"
        return Asset(url, f"{url}.sha256", _single_checksum)
    if part.release == "etcd":
        folder = f"{base}/github.com/etcd-io/etcd/releases/download/v{part.version}"
        suffix = "zip" if system == "darwin" else "tar.gz"
        return Asset(
            f"{folder}/etcd-v{part.version}-{platform}.{suffix}", f"{folder}/SHA256SUMS", _checksum_from_list
        )
    return Asset(
        f"{base}/github.com/kubernetes-sigs/kwok/releases/download/v{part.version}/kwok-{platform}",
        f"{base}/api.github.com/repos/kubernetes-sigs/kwok/releases/tags/v{part.version}",
        _checksum_from_metadata,
    )


def download(part: Program, published: Asset, destination: Path, task: Task) -> None:
    """Download a program, verify its checksum, and then move it to its destination."""
    wanted = published.read_checksum(_fetch(published.checksums), published.name)
    if wanted is None:
        raise ReleaseUnavailable(f"no checksum for {published.name} in {published.checksums}")
    content = _fetch(published.url, task)
    found = hashlib.sha256(content).hexdigest()
    if found != wanted:
        raise LocalError(f"{published.url} has checksum {found}, the published one is {wanted}: rejected")
    draft = destination.with_name(destination.name + ".new")
    draft.write_bytes(_unpack(content, published.name, part.name))
    draft.chmod(0o755)
    draft.replace(destination)


def _fetch(url: str, task: Task | None = None) -> bytes:
    name = url.rpartition("/")[2]
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT) as answer:  # noqa: S310 - our own addresses
            total = int(answer.headers.get("Content-Length") or 0)
            content = bytearray()
            while chunk := answer.read(_CHUNK):
                content += chunk
                if task is not None:
                    task.step(name, len(content) >> 20, total >> 20 or None)
    except (urllib.error.URLError, OSError) as error:
        raise ReleaseUnavailable(f"{url}: {getattr(error, 'reason', error)}") from error
    return bytes(content)


def _unpack(content: bytes, archive: str, name: str) -> bytes:
    if archive.endswith(".tar.gz"):
        with tarfile.open(fileobj=io.BytesIO(content)) as tar:
            for member in tar:
                if member.isfile() and member.name.rpartition("/")[2] == name:
                    file = tar.extractfile(member)
                    assert file is not None
                    return file.read()
        raise LocalError(f"{archive} holds no {name}")
    if archive.endswith(".zip"):
        with zipfile.ZipFile(io.BytesIO(content)) as folder:
            for inside in folder.namelist():
                if inside.rpartition("/")[2] == name:
                    return folder.read(inside)
        raise LocalError(f"{archive} holds no {name}")
    return content


def _single_checksum(text: bytes, _name: str) -> str | None:
    words = text.decode().split()
    return words[0] if words else None


def _checksum_from_list(text: bytes, name: str) -> str | None:
    for line in text.decode().splitlines():
        words = line.split()
        if len(words) == 2 and words[1].lstrip("*") == name:
            return words[0]
    return None


def _checksum_from_metadata(text: bytes, name: str) -> str | None:
    for published in json.loads(text).get("assets", []):
        if published.get("name") == name:
            kind, _, digest = (published.get("digest") or "").partition(":")
            return digest if kind == "sha256" else None
    return None
