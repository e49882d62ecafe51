"""Where a command reads: the cluster of a kubeconfig, and one namespace or all."""

from __future__ import annotations

from pathlib import Path

from grove.kube.auth import config
from grove.kube.auth.config import Config
from grove.kube.client import label_selector
from grove.kube.errors import ConfigError


def load_config(
    kubeconfig: Path | None,
    context: str | None,
    name: str | None,
    namespace: str | None,
    all_namespaces: bool,
    selector: str | None = None,
) -> tuple[Config, str | None]:
    """The connection, and the namespace to read; None: all. Raises ConfigError, also for options that exclude
    each other."""
    check_scope(name, namespace, all_namespaces, selector)
    connection = config.load(kubeconfig, context)
    return connection, None if all_namespaces else namespace or connection.namespace


def check_scope(
    name: str | None, namespace: str | None, all_namespaces: bool, selector: str | None = None
) -> None:
    """Raises ConfigError for options that exclude each other, and for a selector that is not one."""
    if all_namespaces and namespace:
        raise ConfigError(f"--namespace {namespace} and --all-namespaces exclude each other: use one of them")
    if all_namespaces and name:
        raise ConfigError(f"{name}: a name needs a namespace: replace --all-namespaces with --namespace")
    if selector is None:
        return
    if name:
        raise ConfigError(f"{name} and --selector {selector} exclude each other: use one of them")
    try:
        label_selector.parse(selector)
    except ValueError as problem:
        raise ConfigError(f"--selector {selector}: {problem}") from None
