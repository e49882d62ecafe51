"""The programs of a control plane, and their supported versions."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

from grove.local.errors import LocalError

KUBERNETES = {"1.37": "1.37.1", "1.36": "1.36.3", "1.35": "1.35.4", "1.34": "1.34.4"}
"""The release of each supported minor version, newest first."""
ETCD = "3.6.8"
KWOK = "0.8.0"
GO = "1.26.0"

_DEFAULT_MINOR = "1.37"


class Program(NamedTuple):
    """A program of the control plane."""

    name: str
    version: str
    release: str  # the project whose release contains it


def default_minor(environ: Mapping[str, str] = os.environ) -> str:
    """The minor version of a new cluster for which none is given."""
    return minor_version(environ.get("GROVE_KUBERNETES") or _DEFAULT_MINOR, "GROVE_KUBERNETES")


def minor_version(text: str, option: str = "--kubernetes") -> str:
    """The supported minor version that a user names, as `1.37` or by its release."""
    named = text.removeprefix("v")
    for minor, release in KUBERNETES.items():
        if named in (minor, release):
            return minor
    supported = ", ".join(f"{minor} ({release})" for minor, release in KUBERNETES.items())
    raise LocalError(f"{option} {text}: not a supported version; choose one of {supported}")


def programs(minor: str) -> tuple[Program, ...]:
    """The programs of a control plane of this minor version of Kubernetes."""
    release = KUBERNETES[minor]
    return (
        Program("etcd", ETCD, "etcd"),
        Program("kube-apiserver", release, "kubernetes"),
        Program("kube-controller-manager", release, "kubernetes"),
        Program("kube-scheduler", release, "kubernetes"),
        Program("kwok", KWOK, "kwok"),
        Program("kubectl", release, "kubernetes"),
    )


def same_minor(found: str, wanted: str) -> bool:
    """Whether two versions are of the same minor release; programs of other minor releases are not used."""
    return found.lstrip("v").split(".")[:2] == wanted.split(".")[:2]


def is_older(minor: str, other: str) -> bool:
    """Whether a minor version precedes another one."""
    return _numbers(minor) < _numbers(other)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
