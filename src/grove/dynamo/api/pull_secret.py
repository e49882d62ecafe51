"""Image pull Secrets, and the registries that they hold credentials for."""

from __future__ import annotations

from fnmatch import fnmatchcase

import msgspec
from msgspec import Raw, Struct, field
from msgspec.structs import force_setattr

from grove.api.meta import ObjectMeta
from grove.api.wire import Wire

TYPE = "kubernetes.io/dockerconfigjson"
_HUB = "docker.io"
_HUB_ALIASES = ("index.docker.io", "registry-1.docker.io")


class _Data(Wire, frozen=True):
    config: bytes = field(name=".dockerconfigjson", default=b"")


class _Config(Struct, frozen=True):
    auths: dict[str, Raw] | None = None


class PullSecret(Wire, frozen=True):
    """An image pull Secret. Only the names of registries are kept in memory: no credentials, and no
    annotations either, since kubectl's last-applied annotation holds a copy of the data."""

    metadata: ObjectMeta
    data: _Data | None = None
    registries: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        meta = self.metadata
        if self.data is not None:
            force_setattr(self, "registries", _registries_in(self.data.config))
        force_setattr(self, "data", None)
        slim = ObjectMeta(meta.name, meta.namespace, meta.uid, meta.resource_version)
        force_setattr(self, "metadata", slim)


def _registries_in(config: bytes) -> frozenset[str]:
    """The registries of a docker config; none if it cannot be decoded: the kubelet cannot use it either."""
    try:
        found = msgspec.json.decode(config, type=_Config).auths or {}
    except (msgspec.DecodeError, UnicodeDecodeError):
        return frozenset()
    return frozenset(_host(entry.rpartition("://")[2]) for entry in found)


def registry_of(image: str) -> str:
    """The registry host of an image, with its port."""
    first, slash, _ = image.partition("/")
    named = slash and (first == "localhost" or "." in first or ":" in first)
    return _host(first) if named else _HUB


def _host(address: str) -> str:
    host = address.partition("/")[0].lower()
    return _HUB if host in _HUB_ALIASES else host


def matches_registry(entry: str, registry: str) -> bool:
    """Whether an entry of a Secret matches a registry. As in the kubelet, `*` matches text without a dot."""
    if "*" not in entry:
        return entry == registry
    (pattern, _, port), (host, _, other) = entry.partition(":"), registry.partition(":")
    globs, parts = pattern.split("."), host.split(".")
    return (
        port == other
        and len(globs) == len(parts)
        and all(fnmatchcase(part, glob) for part, glob in zip(parts, globs, strict=True))
    )
