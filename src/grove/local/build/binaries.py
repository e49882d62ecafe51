"""Finds the programs of the control plane: cache, KUBEBUILDER_ASSETS, PATH, official release, own build.

Each program comes from the first of these that has it in the supported minor version. Downloads and builds
go into the cache; a lock on the cache lets two commands request the same program at the same time.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from grove.local.build import go_build
from grove.local.build.releases import ReleaseUnavailable, asset, download
from grove.local.build.versions import ETCD, KUBERNETES, KWOK, Program, programs, same_minor
from grove.local.errors import LocalError
from grove.local.paths import cache_dir, target
from grove.local.progress import ProgressReporter

_MULTI_CALL = "controlplane"
_VERSION = re.compile(r"\bv?(\d+\.\d+\.\d+)")
_VERSION_FLAGS = {"kubectl": ("version", "--client")}


@dataclass(frozen=True, slots=True)
class Binaries:
    """The path and the origin of each program."""

    paths: Mapping[str, Path]
    origins: Mapping[str, str]

    def __getitem__(self, name: str) -> Path:
        return self.paths[name]


def find(minor: str, reporter: ProgressReporter, environ: Mapping[str, str] = os.environ) -> Binaries:
    """All programs of the control plane of a minor version, downloaded or built if needed."""
    folder = _folder(minor, environ)
    found = _find_installed(programs(minor), folder, environ)
    if _missing(minor, found):
        with locked(folder):
            # Another command may have added them meanwhile.
            found = _find_installed(programs(minor), folder, environ)
            found |= _fetch(_missing(minor, found), folder, reporter, environ)
            found |= _build(minor, _missing(minor, found), folder, reporter, environ)
    return Binaries(
        {name: path for name, (path, _) in found.items()},
        {name: origin for name, (_, origin) in found.items()},
    )


def available(minor: str, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether the programs are on this machine, so that `find` neither downloads nor builds any."""
    return not _missing(minor, _find_installed(programs(minor), _folder(minor, environ), environ))


def _missing(minor: str, found: Mapping[str, tuple[Path, str]]) -> list[Program]:
    return [part for part in programs(minor) if part.name not in found]


def _folder(minor: str, environ: Mapping[str, str]) -> Path:
    """The cache folder for these versions on this platform; a changed build recipe uses another folder."""
    recipe = hashlib.sha256()
    for source in go_build.sources(minor):
        recipe.update(source.read_bytes())
    versions = f"kubernetes-{KUBERNETES[minor]}-etcd-{ETCD}-kwok-{KWOK}"
    return cache_dir(environ) / "bin" / f"{versions}-{'-'.join(target())}-{recipe.hexdigest()[:8]}"


def _find_installed(
    parts: Iterable[Program], folder: Path, environ: Mapping[str, str]
) -> dict[str, tuple[Path, str]]:
    found: dict[str, tuple[Path, str]] = {}
    for part in parts:
        if os.access(folder / part.name, os.X_OK):
            found[part.name] = (folder / part.name, "cache")
            continue
        for origin, path in _installed(part, environ):
            if same_minor(version_of(part, path), part.version):
                found[part.name] = (path, origin)
                break
    return found


def _installed(part: Program, environ: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    assets = environ.get("KUBEBUILDER_ASSETS")
    if assets and os.access(Path(assets) / part.name, os.X_OK):
        yield "KUBEBUILDER_ASSETS", Path(assets) / part.name
    if on_path := shutil.which(part.name, path=environ.get("PATH")):
        yield "PATH", Path(on_path)


def version_of(part: Program, path: Path) -> str:
    """The version that a program reports; empty if it reports none."""
    command = [str(path), *_VERSION_FLAGS.get(part.name, ("--version",))]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    found = _VERSION.search(answer.stdout)
    return found[1] if found else ""


def _fetch(
    parts: list[Program], folder: Path, reporter: ProgressReporter, environ: Mapping[str, str]
) -> dict[str, tuple[Path, str]]:
    """Download official releases; stops at the first one that is unavailable."""
    fetched: dict[str, tuple[Path, str]] = {}
    if environ.get("GROVE_BUILD") == "always":
        return fetched
    system, architecture = target()
    try:
        with reporter.task("downloading releases") as task:
            for part in parts:
                download(part, asset(part, system, architecture, environ), folder / part.name, task)
                fetched[part.name] = (folder / part.name, "release")
    except ReleaseUnavailable as reason:
        reporter.say(f"official release unavailable ({reason})")
    return fetched


def _build(
    minor: str, parts: list[Program], folder: Path, reporter: ProgressReporter, environ: Mapping[str, str]
) -> dict[str, tuple[Path, str]]:
    if not parts:
        return {}
    reporter.say(
        f"building {', '.join(part.name for part in parts)} from source (only once); this takes some minutes"
    )
    go_build.build(minor, folder / _MULTI_CALL, cache_dir(environ), reporter)
    for part in parts:
        link = folder / part.name
        link.unlink(missing_ok=True)
        link.symlink_to(_MULTI_CALL)
    return {part.name: (folder / part.name, "built") for part in parts}


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock on a folder of the cache."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / ".lock").open("a")
    except OSError as error:
        raise LocalError(
            f"cannot write to the cache {folder}: {error.strerror}; set GROVE_CACHE to another folder"
        ) from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
