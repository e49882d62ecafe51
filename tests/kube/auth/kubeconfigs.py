"""Builders for kubeconfig files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from grove.kube.auth import config


def kubeconfig(
    user: dict[str, Any] | None = None, cluster: dict[str, Any] | None = None, **more: Any
) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": "https://c:6443"} | (cluster or {})}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    } | more


def write(path: Path, content: dict[str, Any] | str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return path


async def token_of(loaded: config.Config) -> str | None:
    return (await loaded.credentials.current()).authorization
