"""The archive of `grove diagnostics`: files, within a limit, and a list of what is missing. Pure."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Iterable, Mapping

import msgspec

from grove import timing
from grove.cluster_state.secret_text import without_tokens
from grove.views.claim_view import View

CONTENTS = "contents.json"


class BundleFile(View, frozen=True):
    """A file of the archive."""

    name: str
    bytes: int


class Missing(View, frozen=True):
    """What is not in the archive, and why."""

    what: str
    reason: str


class Contents(View, frozen=True):
    """What is in the archive, and what is not."""

    created: str
    version: str
    server_version: str
    files: tuple[BundleFile, ...]
    missing: tuple[Missing, ...]


def chosen(
    files: Mapping[str, bytes], limit: int = timing.BUNDLE_BYTES
) -> tuple[dict[str, bytes], list[Missing]]:
    """The files that fit into the limit together, in their order, without tokens, and the others."""
    kept: dict[str, bytes] = {}
    left_out: list[Missing] = []
    for name, content in files.items():
        if sum(map(len, kept.values())) + len(content) > limit:
            left_out.append(
                Missing(name, f"{len(content)} bytes: together more than {limit}: use --namespace")
            )
        else:
            kept[name] = without_tokens(content.decode("utf-8", "replace")).encode()
    return kept, left_out


def contents(
    files: Mapping[str, bytes], missing: Iterable[Missing], *, created: str, version: str, server_version: str
) -> Contents:
    """The list of an archive with these files."""
    listed = tuple(BundleFile(name, len(content)) for name, content in files.items())
    return Contents(created, version, server_version, listed, tuple(missing))


def archive(folder: str, files: Mapping[str, bytes], listed: Contents, created: float) -> bytes:
    """The files in a folder of a gzipped tar archive; only the owner may read them when it is unpacked."""
    described = msgspec.json.format(msgspec.json.encode(listed), indent=2) + b"\n"
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, content in {CONTENTS: described, **files}.items():
            entry = tarfile.TarInfo(f"{folder}/{name}")
            entry.size, entry.mtime, entry.mode = len(content), int(created), 0o600
            tar.addfile(entry, io.BytesIO(content))
    return gzip.compress(packed.getvalue(), mtime=int(created))
