"""The audit log of the API server as the record of what happened to pods: it has the writes of all clients,
the scheduler among them, with the times of the server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from msgspec import Struct

from grove.local.cluster import command_lines
from grove.local.cluster.health import Probe, wait_until_healthy
from grove.local.cluster.lifecycle import LocalCluster, stop_components
from grove.local.cluster.pki import Pki
from grove.local.cluster.processes import spawn
from grove.local.private_files import write_private
from tests.clusters import programs

NAME = "kube-apiserver"
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


def audit_pods(cluster: LocalCluster) -> None:
    """Start the API server of a cluster again, so that its audit log has all writes of pods, with their
    bodies. The cluster must have been started with an audit log."""
    state, record = cluster.state, cluster.record
    stop_components(state, (NAME,))
    write_private(state.config("audit-policy.json"), json.dumps(_POLICY).encode())
    pki, binary = Pki(state.pki), programs(record.settings.kubernetes)[NAME]
    line = command_lines.apiserver(binary, state, record.settings, record.ports, pki)
    process = spawn(line, state.log(NAME), state.pid(NAME))

    def check() -> None:
        assert process.alive, state.log(NAME).read_text()[-2000:]

    wait_until_healthy(Probe(NAME, record.ports.apiserver, "/readyz"), pki.pair("ca").cert, check)


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
