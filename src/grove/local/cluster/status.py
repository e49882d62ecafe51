"""The status of a local cluster: the health of each component, and of the nodes."""

from __future__ import annotations

from pathlib import Path

import msgspec

from grove.kube.errors import KubeError
from grove.local.cluster.health import Probe, health_problem
from grove.local.cluster.lifecycle import COMPONENTS, components_of, running
from grove.local.cluster.nodes import is_ready, read_nodes
from grove.local.cluster.processes import tail
from grove.local.errors import LocalError
from grove.local.state_dir import Ports, StateDir


class ComponentHealth(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One component: healthy, unhealthy, exited (it should run and does not) or stopped."""

    name: str
    state: str
    pid: int | None
    port: int | None
    origin: str
    log: Path
    last_words: str = ""


class ClusterStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """All components and the nodes; the nodes are unknown while the API server does not respond."""

    state_dir: Path
    server: str
    kubeconfig: Path
    parts: tuple[ComponentHealth, ...]
    nodes: int | None = None
    ready_nodes: int | None = None

    @property
    def healthy(self) -> bool:
        return all(part.state == "healthy" for part in self.parts)

    def to_json(self) -> str:
        return msgspec.json.encode(self, enc_hook=str).decode()


async def read_status(state: StateDir) -> ClusterStatus:
    """Read the health of every component."""
    record = state.read()
    if record is None:
        raise LocalError(f"no cluster in {state.root}: run grove up{state.option}")
    parts = tuple(
        _part(state, name, _probe(name, record.ports), record.origins)
        for name in components_of(record.settings)
    )
    found = ClusterStatus(
        state_dir=state.root,
        server=f"https://127.0.0.1:{record.ports.apiserver}",
        kubeconfig=state.kubeconfig,
        parts=parts,
    )
    if parts[COMPONENTS.index("kube-apiserver")].state != "healthy":
        return found
    try:
        nodes = await read_nodes(state.kubeconfig)
    except KubeError:
        return found  # the API server stopped in between: the nodes are unknown
    return msgspec.structs.replace(found, nodes=len(nodes), ready_nodes=sum(map(is_ready, nodes)))


def _probe(name: str, ports: Ports) -> Probe | None:
    """The health endpoint of a component; None for stand-ins, which have none."""
    return {
        "etcd": Probe("etcd", ports.etcd),
        "kube-apiserver": Probe("kube-apiserver", ports.apiserver, "/readyz"),
        "kube-controller-manager": Probe("kube-controller-manager", ports.controller_manager, "/healthz"),
        "kube-scheduler": Probe("kube-scheduler", ports.scheduler, "/readyz"),
        "kwok": Probe("kwok", ports.kwok),
    }.get(name)


def _part(state: StateDir, name: str, probe: Probe | None, origins: dict[str, str]) -> ComponentHealth:
    process = running(state).get(name)
    last_lines = ""
    if process is None:
        condition = "exited" if state.pid(name).exists() else "stopped"
        last_lines = tail(state.log(name)) if condition == "exited" else ""
    else:
        problem = health_problem(probe, state.pki / "ca.crt") if probe else ""
        condition = f"unhealthy: {problem}" if problem else "healthy"
    return ComponentHealth(
        name=name,
        state=condition,
        pid=process.pid if process else None,
        port=probe.port if probe else None,
        origin=origins.get(name, ""),
        log=state.log(name),
        last_words=last_lines,
    )
