"""The audit log of the API server as the record of what happened to pods: it has the writes of all clients,
the scheduler among them, with the times of the server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from grove.local.cluster import command_lines

_OMITTED = ["RequestReceived", "ResponseStarted"]
_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": _OMITTED,
    "rules": [
        {"level": "None", "users": ["kwok"]},
        {
            "level": "Request",
            "verbs": ["create", "patch", "update", "delete"],
            "resources": [{"group": "", "resources": ["pods", "pods/binding", "pods/status"]}],
        },
        {"level": "None"},
    ],
}


class PodWrite(Struct, frozen=True):
    """A write that the API server has accepted."""

    at: float
    """Seconds since 1970."""
    namespace: str
    pod: str
    what: str
    """The verb, or the subresource: create, patch, delete, binding, status."""
    body: dict[str, Any] = {}


@contextmanager
def pods_audited() -> Iterator[None]:
    """A cluster with an audit log that is started meanwhile has all writes of pods in it, with their bodies.
    Its API server is not restarted for that: nodes played by KWOK may stay without heartbeats afterwards."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(command_lines, "audit_policy", lambda: _POLICY)
        yield


def pod_writes(log: Path) -> Iterator[PodWrite]:
    """The writes of pods in their order, from all files of the log."""
    for path in sorted(log.parent.glob(f"{log.stem}*{log.suffix}"), key=lambda path: (path == log, path)):
        with path.open() as lines:
            for line in lines:
                if line.endswith("\n") and (found := _read(json.loads(line))) is not None:
                    yield found


def _read(line: dict[str, Any]) -> PodWrite | None:
    target, body = line["objectRef"], line.get("requestObject") or {}
    if target["resource"] != "pods" or line["responseStatus"].get("code", 0) >= 300:
        return None
    name = target.get("name") or body["metadata"]["name"]
    at = datetime.fromisoformat(line["stageTimestamp"]).timestamp()
    return PodWrite(at, target["namespace"], name, target.get("subresource") or line["verb"], body)
