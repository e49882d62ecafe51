"""Arguments of the init container: which cliques to wait for, and in which namespace and gang its pod is."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from grove.api.naming import well_known

USAGE = f"""\
usage: grove initc --podcliques=NAME:COUNT [--podcliques=NAME:COUNT ...]

Waits until each of these PodCliques has COUNT ready pods, all at the same time, and exits with 0.
It watches the pods of its own gang, with the service account that is mounted into the pod.

  -p, --podcliques NAME:COUNT   a PodClique to wait for; may be given several times
  --service-account DIR         where token and ca.crt are ({well_known.TOKEN_MOUNT})
  --pod-info DIR                where namespace and podgangname are ({well_known.POD_INFO_MOUNT})
"""

_OPTIONS = {
    "-p": "podcliques",
    "--podcliques": "podcliques",
    "--service-account": "service_account",
    "--pod-info": "pod_info",
}
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?").fullmatch


class UsageError(Exception):
    """An argument or a file of the pod cannot be used; the message names it and the remedy."""


class WaitArguments(NamedTuple):
    """The command line: the PodCliques to wait for, and the folders of the pod's own files."""

    cliques: Mapping[str, int]
    """How many ready pods each PodClique must have."""
    service_account: Path = Path(well_known.TOKEN_MOUNT)
    pod_info: Path = Path(well_known.POD_INFO_MOUNT)


class PodContext(NamedTuple):
    """The API server that the pod talks to, and the namespace and gang that it is in."""

    host: str
    port: int
    namespace: str
    gang: str


def parse(arguments: Sequence[str]) -> WaitArguments:
    """The parsed command line. Raises UsageError."""
    cliques: dict[str, int] = {}
    folders: dict[str, Path] = {}
    for option, value in _pairs(arguments):
        if option != "podcliques":
            folders[option] = Path(value)
            continue
        for item in value.split(","):
            name, count = _clique(item)
            cliques[name] = max(count, cliques.get(name, 0))
    if not cliques:
        raise UsageError("no PodClique to wait for: give --podcliques=NAME:COUNT")
    return WaitArguments(cliques, **folders)


def _pairs(arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    rest = list(arguments)
    while rest:
        option, equals, value = rest.pop(0).partition("=")
        if option not in _OPTIONS:
            raise UsageError(f"{option}: no such option; give --podcliques=NAME:COUNT")
        if not equals:
            if not rest:
                raise UsageError(f"{option}: a value is missing")
            value = rest.pop(0)
        yield _OPTIONS[option], value


def _clique(text: str) -> tuple[str, int]:
    name, _, count = text.strip().rpartition(":")
    if not _NAME(name):
        raise UsageError(f"--podcliques={text}: write NAME:COUNT with the name of a PodClique")
    if not (count.isascii() and count.isdecimal() and int(count) > 0):
        raise UsageError(f"--podcliques={text}: the count must be a whole number above 0, not {count!r}")
    return name, int(count)


def locate(arguments_: WaitArguments, environ: Mapping[str, str] = os.environ) -> PodContext:
    """The pod's context, read from its environment and from the volume with the pod's metadata."""
    host, port = environ.get("KUBERNETES_SERVICE_HOST", ""), environ.get("KUBERNETES_SERVICE_PORT", "443")
    if not host or not port.isdecimal():
        raise UsageError("KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be set: run it in a pod")
    return PodContext(
        host,
        int(port),
        _pod_info(arguments_.pod_info / well_known.POD_INFO_NAMESPACE),
        _pod_info(arguments_.pod_info / well_known.POD_INFO_GANG),
    )


def _pod_info(file: Path) -> str:
    try:
        text = file.read_text().strip()
    except (OSError, UnicodeDecodeError) as problem:
        why = getattr(problem, "strerror", None) or "not text"
        raise UsageError(
            f"{file} cannot be read ({why}): mount the volume {well_known.POD_INFO_VOLUME}"
        ) from None
    if not _NAME(text):
        raise UsageError(f"{file} contains {text!r}, which is not a name: check the labels of the pod")
    return text
