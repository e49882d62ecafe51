"""The platforms that archives are built for, as pex reads them: which wheels run there."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from packaging import tags

PYTHONS = (11, 12, 13, 14)
"""The minor versions of Python 3 whose wheels an archive contains."""
_NEWEST_GLIBC, _OLDEST_GLIBC, _MACOS = 28, 17, (13, 0)


class Platform(NamedTuple):
    """A platform in the words of krew, and its machine in those of Python."""

    os: str
    arch: str
    machine: str

    @property
    def archive(self) -> str:
        """The file name of its archive."""
        return f"kubectl-grove-{self.os}-{self.arch}.tar.gz"

    def write_targets(self, folder: Path) -> Iterator[Path]:
        """Files for pex, one for each version of Python."""
        for minor in PYTHONS:
            target = {"marker_environment": self._markers(minor), "compatible_tags": self._tags(minor)}
            file = folder / f"{self.os}-{self.arch}-3.{minor}.json"
            file.write_text(json.dumps(target))
            yield file

    def _tags(self, minor: int) -> list[str]:
        """The tags of wheels that run there, the best first."""
        if self.os == "darwin":
            names = [*tags.mac_platforms(_MACOS, self.machine)]
        else:
            glibc = range(_NEWEST_GLIBC, _OLDEST_GLIBC - 1, -1)
            names = [*(f"manylinux_2_{each}_{self.machine}" for each in glibc)]
            names += [f"manylinux2014_{self.machine}", f"linux_{self.machine}"]
        version, python = (3, minor), f"cp3{minor}"
        found = (
            *tags.cpython_tags(version, [python], names),
            *tags.compatible_tags(version, python, names),
        )
        return [str(each) for each in found]

    def _markers(self, minor: int) -> dict[str, str]:
        return {
            "implementation_name": "cpython",
            "implementation_version": f"3.{minor}.0",
            "os_name": "posix",
            "platform_machine": self.machine,
            "platform_python_implementation": "CPython",
            "platform_release": "",
            "platform_system": self.os.capitalize(),
            "platform_version": "",
            "python_full_version": f"3.{minor}.0",
            "python_version": f"3.{minor}",
            "sys_platform": self.os,
        }


PLATFORMS = (
    Platform("linux", "amd64", "x86_64"),
    Platform("linux", "arm64", "aarch64"),
    Platform("darwin", "amd64", "x86_64"),
    Platform("darwin", "arm64", "arm64"),
)


def this_platform() -> Platform:
    """The platform of this machine. Raises LookupError if no archive is built for it."""
    here = (platform.system().lower(), platform.machine())
    for each in PLATFORMS:
        if (each.os, each.machine) == here:
            return each
    raise LookupError(f"no archive is built for {' '.join(here)}")
