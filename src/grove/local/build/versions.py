"""The programs of a control plane, and their supported versions."""

from __future__ import annotations

from typing import NamedTuple

KUBERNETES = "1.36.3"
ETCD = "3.6.8"
KWOK = "0.8.0"
GO = "1.26.0"


class Program(NamedTuple):
    """A program of the control plane."""

    name: str
    version: str
    release: str  # the project whose release contains it


PROGRAMS = (
    Program("etcd", ETCD, "etcd"),
    Program("kube-apiserver", KUBERNETES, "kubernetes"),
    Program("kube-controller-manager", KUBERNETES, "kubernetes"),
    Program("kube-scheduler", KUBERNETES, "kubernetes"),
    Program("kwok", KWOK, "kwok"),
    Program("kubectl", KUBERNETES, "kubernetes"),
)


def same_minor(found: str, wanted: str) -> bool:
    """Whether two versions are of the same minor release; programs of other minor releases are not used."""
    return found.lstrip("v").split(".")[:2] == wanted.split(".")[:2]
