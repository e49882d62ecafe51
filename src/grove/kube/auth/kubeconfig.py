"""Reads and merges kubeconfig files as kubectl does. What the entries mean is decided in `config`.

The first file to name a context, cluster or user wins, missing files of the list are skipped, and a
relative path is relative to the file that contains it.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from grove.kube import yaml_parser
from grove.kube.errors import ConfigError
from grove.kube.yaml_parser import YamlError


class ClusterEntry(Struct, frozen=True, rename="kebab"):
    """The address of an API server, and how its certificate is verified."""

    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""


class ExecEnvVar(Struct, frozen=True):
    """One environment variable for a credential plugin."""

    name: str
    value: str = ""


class ExecEntry(Struct, frozen=True, rename="camel"):
    """A program that prints credentials."""

    command: str = ""
    api_version: str = ""
    args: tuple[str, ...] | None = None
    env: tuple[ExecEnvVar, ...] | None = None
    interactive_mode: str = "IfAvailable"
    install_hint: str | None = None
    provide_cluster_info: bool = False


class UserEntry(
    Struct, frozen=True, rename={"token_file": "tokenFile", "as_": "as", "auth_provider": "auth-provider"}
):
    """The credentials of a user."""

    token: str = ""
    token_file: str = ""
    client_certificate: str = msgspec.field(default="", name="client-certificate")
    client_certificate_data: str = msgspec.field(default="", name="client-certificate-data")
    client_key: str = msgspec.field(default="", name="client-key")
    client_key_data: str = msgspec.field(default="", name="client-key-data")
    username: str = ""
    password: str = ""
    exec: ExecEntry | None = None
    auth_provider: dict[str, Any] | None = None
    as_: str = ""
    as_uid: str = msgspec.field(default="", name="as-uid")
    as_groups: tuple[str, ...] = msgspec.field(default=(), name="as-groups")
    as_user_extra: dict[str, tuple[str, ...]] = msgspec.field(default={}, name="as-user-extra")


class ContextEntry(Struct, frozen=True):
    """A user on a cluster, in a namespace."""

    cluster: str = ""
    user: str = ""
    namespace: str = ""


class _NamedCluster(Struct, frozen=True):
    name: str
    cluster: ClusterEntry | None = None


class _NamedUser(Struct, frozen=True):
    name: str
    user: UserEntry | None = None


class _NamedContext(Struct, frozen=True):
    name: str
    context: ContextEntry | None = None


class _File(Struct, frozen=True, rename="kebab"):
    clusters: tuple[_NamedCluster, ...] | None = None
    users: tuple[_NamedUser, ...] | None = None
    contexts: tuple[_NamedContext, ...] | None = None
    current_context: str | None = None


class Kubeconfig(Struct):
    """The merged content of all files."""

    files: str
    clusters: dict[str, ClusterEntry]
    users: dict[str, UserEntry]
    contexts: dict[str, ContextEntry]
    current_context: str = ""


def read(paths: Iterable[Path]) -> Kubeconfig | None:
    """The files merged; None when none of them exists."""
    found = [path for path in paths if path.exists()]
    merged = Kubeconfig(", ".join(map(str, found)), {}, {}, {})
    for path in found:
        _merge(merged, _read_file(path), path.resolve().parent)
    return merged if found else None


def _read_file(path: Path) -> _File:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        why = problem.strerror if isinstance(problem, OSError) else "not text"
        raise ConfigError(
            f"kubeconfig {path} cannot be read ({why}): check its path, owner and mode"
        ) from None
    try:
        return msgspec.convert(yaml_parser.parse(text, numbers=False) or {}, _File)
    except YamlError as problem:
        raise ConfigError(f"kubeconfig {path} is {problem}: correct it or generate it again") from None
    except msgspec.ValidationError as problem:
        raise ConfigError(
            f"kubeconfig {path} is not a kubeconfig ({problem}): correct it or generate it again"
        ) from None


def _merge(merged: Kubeconfig, file: _File, folder: Path) -> None:
    for named in file.clusters or ():
        cluster = _absolute(named.cluster or ClusterEntry(), folder, "certificate_authority")
        merged.clusters.setdefault(named.name, cluster)
    for named_user in file.users or ():
        user = _absolute(
            named_user.user or UserEntry(), folder, "client_certificate", "client_key", "token_file"
        )
        if user.exec and "/" in user.exec.command:
            user = msgspec.structs.replace(user, exec=_absolute(user.exec, folder, "command"))
        merged.users.setdefault(named_user.name, user)
    for context in file.contexts or ():
        merged.contexts.setdefault(context.name, context.context or ContextEntry())
    merged.current_context = merged.current_context or file.current_context or ""


_S = TypeVar("_S", ClusterEntry, UserEntry, ExecEntry)


def _absolute(entry: _S, folder: Path, *fields: str) -> _S:
    """The entry with its relative paths resolved against the folder of its file."""
    paths = {name: str(folder / getattr(entry, name)) for name in fields if getattr(entry, name)}
    return msgspec.structs.replace(entry, **paths)
