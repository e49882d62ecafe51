"""Which programs make a control plane, and which versions of them we stand on."""

from __future__ import annotations

from typing import NamedTuple

KUBERNETES = "1.36.3"
ETCD = "3.6.8"
KWOK = "0.8.0"
GO = "1.26.0"


class Part(NamedTuple):
    """A program of the control plane."""

    name: str
    version: str
    release: str  # whose release it comes with


PARTS = (
    Part("etcd", ETCD, "etcd"),
    Part("kube-apiserver", KUBERNETES, "kubernetes"),
    Part("kube-controller-manager", KUBERNETES, "kubernetes"),
    Part("kube-scheduler", KUBERNETES, "kubernetes"),
    Part("kwok", KWOK, "kwok"),
    Part("kubectl", KUBERNETES, "kubernetes"),
)


def same_minor(found: str, wanted: str) -> bool:
    """A part of another minor release is another product: it is passed over."""
    return found.lstrip("v").split(".")[:2] == wanted.split(".")[:2]
