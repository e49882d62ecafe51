"""Builds one archive: the program as a pex, and the licence, which krew requires in the archive.

The same input has the same archive, byte by byte: times, owners and the order of files are fixed.
"""

from __future__ import annotations

import gzip
import io
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Sequence
from pathlib import Path

from tools.krew.platforms import Platform

ROOT = Path(__file__).resolve().parents[2]
PROGRAM, LICENSE = "kubectl-grove", "LICENSE"


def build_wheel(folder: Path) -> Path:
    """This project, as it is installed: the folder of its modules and its metadata."""
    options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--no-build-isolation"]
    _run(sys.executable, "-m", "pip", "wheel", *options, "--wheel-dir", str(folder), str(ROOT))
    (wheel,) = folder.glob("*.whl")
    sources = folder / "sources"
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(sources)  # noqa: S202 - built from this checkout
    return sources


def installed_wheels() -> list[str]:
    """The options of pex for the packages of this environment: for this machine and this Python only, and
    without a package registry."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return [*project["dependencies"], "--venv-repository", sys.prefix]


def locked_wheels(platform: Platform, folder: Path) -> list[str]:
    """The options of pex for the locked versions of all packages, for all versions of Python."""
    lock = folder / "run.lock"
    if not lock.exists():
        options = ["--quiet", "--no-header", "--generate-hashes", "--universal", "--python-version", "3.11"]
        options += ["--no-emit-index-url", "--no-emit-find-links"]
        where = ["--constraints", "requirements.lock", "--output-file", str(lock), "pyproject.toml"]
        _run("uv", "pip", "compile", *options, *where)
    targets = (word for file in platform.write_targets(folder) for word in ("--complete-platform", str(file)))
    return ["-r", str(lock), "--use-pip-config", "--no-build", *targets]


def build_archive(platform: Platform, sources: Path, wheels: Sequence[str], output: Path) -> Path:
    """The archive of a platform, in the folder `output`."""
    output.mkdir(parents=True, exist_ok=True)
    program = output / f"{PROGRAM}-{platform.os}-{platform.arch}.pex"
    start = ["--entry-point", "grove.cli.entry:main", "--python-shebang", "/usr/bin/env python3"]
    _run("pex", *wheels, "--sources-directory", str(sources), *start, "--output-file", str(program))
    archive = output / platform.archive
    archive.write_bytes(_packed({PROGRAM: program.read_bytes(), LICENSE: (ROOT / LICENSE).read_bytes()}))
    program.unlink()
    return archive


def _packed(files: dict[str, bytes]) -> bytes:
    """A gzipped tar archive of programs and texts."""
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w") as archive,
    ):
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o755 if name == PROGRAM else 0o644
            archive.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


def _run(program: str, *arguments: str) -> None:
    path = program if "/" in program else str(Path(sys.executable).with_name(program))
    done = subprocess.run([path, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{program} failed: {done.stderr.strip() or done.stdout.strip()}")
