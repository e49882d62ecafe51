"""Finds the configuration of the cluster connection in the same places as kubectl and client-go.

Order: the path given, the files in KUBECONFIG, the service account of the pod, ~/.kube/config. Opens no
connection. Every mistake becomes a ConfigError of one line that names the remedy.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote, urlsplit

from msgspec import Struct

from grove.kube.auth import kubeconfig
from grove.kube.auth.credentials import Credentials, StaticCredentials
from grove.kube.auth.exec_plugin import ExecCluster, ExecPlugin, ExecSpec
from grove.kube.auth.secret_source import FileSource, InlineSource, SecretSource
from grove.kube.errors import ConfigError

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_Entry = TypeVar("_Entry")


class Config(Struct, frozen=True):
    """One API server and the credentials for it."""

    server: str
    credentials: Credentials
    context: str = ""
    namespace: str = "default"
    authority: SecretSource | None = None
    insecure: bool = False
    server_name: str | None = None
    proxy: str | None = None
    headers: tuple[tuple[str, str], ...] = ()


def load(path: Path | None = None, context: str | None = None) -> Config:
    """The configuration of a context (the current one by default), or that of the pod this runs in."""
    if path is not None:
        return _from_files([path], context, f"kubeconfig {path} does not exist: check the path")
    named = [Path(part) for part in os.environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    if named:
        listed = os.pathsep.join(map(str, named))
        return _from_files(named, context, f"no file of KUBECONFIG={listed} exists: correct or unset it")
    if context is None and os.environ.get("KUBERNETES_SERVICE_HOST"):
        return in_cluster()
    home = Path("~/.kube/config").expanduser()
    return _from_files([home], context, f"no cluster to talk to: set KUBECONFIG, or write {home}")


def in_cluster(folder: Path | None = None) -> Config:
    """The service account that Kubernetes mounts into every pod."""
    folder = folder or SERVICE_ACCOUNT
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        raise ConfigError("not running in a pod (KUBERNETES_SERVICE_HOST is not set): set KUBECONFIG")
    token = FileSource(folder / "token", "service account token")
    token.read()  # fail at the start, where the error is seen
    namespace_file = folder / "namespace"
    return Config(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        credentials=StaticCredentials(token=token),
        context="in-cluster",
        namespace=namespace_file.read_text().strip() if namespace_file.exists() else "default",
        authority=FileSource(folder / "ca.crt", "certificate authority"),
    )


def _from_files(paths: list[Path], context: str | None, absent: str) -> Config:
    merged = kubeconfig.read(paths)
    if merged is None:
        raise ConfigError(absent)
    return _build(merged, context or merged.current_context)


def _build(merged: kubeconfig.Kubeconfig, name: str) -> Config:
    if not name:
        raise ConfigError(f"{merged.files} sets no current-context: run kubectl config use-context NAME")
    context = _entry(merged.contexts, name, "context", merged.files)
    cluster = _entry(merged.clusters, context.cluster, "cluster", merged.files)
    user = (
        _entry(merged.users, context.user, "user", merged.files) if context.user else kubeconfig.UserEntry()
    )
    server = cluster.server.rstrip("/")
    if not _is_address(server):
        raise ConfigError(f"cluster {context.cluster!r} has server {server!r}: give it an https:// address")
    authority = _source(
        cluster.certificate_authority_data, cluster.certificate_authority, "certificate authority"
    )
    return Config(
        server=server,
        credentials=_credentials(context.user, user, cluster, authority),
        context=name,
        namespace=context.namespace or "default",
        authority=authority,
        insecure=cluster.insecure_skip_tls_verify,
        server_name=cluster.tls_server_name or None,
        proxy=cluster.proxy_url or _environment_proxy(server),
        headers=_impersonation(user),
    )


def _is_address(server: str) -> bool:
    try:
        parts = urlsplit(server)
        host = (parts.hostname or "").encode("idna")
        return parts.scheme in ("http", "https") and bool(host) and parts.port != 0
    except ValueError:  # the port is not a number, the host no name, or brackets of an IPv6 address missing
        return False


def _entry(entries: Mapping[str, _Entry], name: str, what: str, files: str) -> _Entry:
    if name in entries:
        return entries[name]
    choice = ", ".join(sorted(entries)) or "none is defined"
    raise ConfigError(f"{what} {name!r} is not in {files or 'the kubeconfig'}: choose one of: {choice}")


def _source(data: str, path: str, purpose: str) -> SecretSource | None:
    """Inline data wins over a file, as in kubectl."""
    if data:
        try:
            return InlineSource(base64.b64decode(data, validate=True))
        except binascii.Error:
            raise ConfigError(f"the inline {purpose} is not base64: generate the kubeconfig again") from None
    return FileSource(Path(path), purpose) if path else None


def _credentials(
    name: str, user: kubeconfig.UserEntry, cluster: kubeconfig.ClusterEntry, authority: SecretSource | None
) -> Credentials:
    if user.exec:
        return ExecPlugin(_exec_spec(name, user.exec, cluster, authority))
    if user.auth_provider:
        raise ConfigError(
            f"user {name!r} uses an auth-provider, which Kubernetes removed in 1.26: use an exec plugin"
        )
    token = InlineSource(user.token.encode()) if user.token else _source("", user.token_file, "token file")
    return StaticCredentials(
        token=token,
        chain=_source(user.client_certificate_data, user.client_certificate, "client certificate"),
        key=_source(user.client_key_data, user.client_key, "client key"),
        basic=(user.username, user.password) if user.username else None,
    )


def _exec_spec(
    name: str, plugin: kubeconfig.ExecEntry, cluster: kubeconfig.ClusterEntry, authority: SecretSource | None
) -> ExecSpec:
    if not plugin.command:
        raise ConfigError(f"the exec plugin of user {name!r} has no command: give it one")
    info = ExecCluster(
        server=cluster.server,
        tls_server_name=cluster.tls_server_name or None,
        insecure_skip_tls_verify=cluster.insecure_skip_tls_verify,
        certificate_authority_data=base64.b64encode(authority.read()).decode() if authority else None,
        proxy_url=cluster.proxy_url or None,
    )
    return ExecSpec(
        user=name,
        command=plugin.command,
        args=plugin.args or (),
        environment=tuple((variable.name, variable.value) for variable in plugin.env or ()),
        api_version=plugin.api_version or "client.authentication.k8s.io/v1",
        interactive=plugin.interactive_mode,
        install_hint=plugin.install_hint or "",
        cluster=info if plugin.provide_cluster_info else None,
    )


def _impersonation(user: kubeconfig.UserEntry) -> tuple[tuple[str, str], ...]:
    """The headers of `as`, `as-uid`, `as-groups` and `as-user-extra`, one for each value."""
    headers = [("Impersonate-User", user.as_), ("Impersonate-Uid", user.as_uid)]
    headers += [("Impersonate-Group", group) for group in user.as_groups]
    for key, values in user.as_user_extra.items():
        headers += [(f"Impersonate-Extra-{quote(key, safe='')}", value) for value in values]
    return tuple((name, value) for name, value in headers if value)


def _environment_proxy(server: str) -> str | None:
    """HTTPS_PROXY and NO_PROXY, read once; loopback never goes through a proxy, as in Go."""
    parts = urlsplit(server)
    host = parts.hostname or ""
    if host == "localhost" or host.startswith("127.") or host == "::1":
        return None
    if not any(name.lower().endswith("_proxy") for name in os.environ):
        return None
    from urllib.request import getproxies, proxy_bypass  # imports HTTP and e-mail, which take 10 ms

    return None if proxy_bypass(host) else getproxies().get(parts.scheme)
