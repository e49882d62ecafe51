"""`grove up`, `grove down`, `grove cluster status`, `grove kubectl`: a real control plane on this machine."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter
from rich.console import Console
from rich.table import Table

from grove.local.build import binaries
from grove.local.cluster import lifecycle
from grove.local.cluster.cluster_shape import parse_shape, shape_for
from grove.local.cluster.command_lines import CONTROLLER_MANAGER_TUNING, ETCD_TUNING, SCHEDULER_TUNING
from grove.local.cluster.status import ClusterStatus, read_status
from grove.local.errors import LocalError
from grove.local.paths import default_state_dir
from grove.local.progress import ProgressReporter
from grove.local.state_dir import ClusterSettings, StateDir

app = App(name="cluster", help="Look at the local cluster.")

StateOption = Annotated[Path | None, Parameter(help="Where the cluster lives; several live side by side.")]
_DEFAULT_NODES = 16


def up(
    *,
    state_dir: StateOption = None,
    nodes: int | None = None,
    gpus: int | None = None,
    shape: str | None = None,
    pace: Literal["fast", "slow"] | None = None,
    port: int | None = None,
    feature_gates: str | None = None,
    runtime_config: str | None = None,
    audit: bool | None = None,
    init_containers: bool | None = None,
    fabric: bool | None = None,
) -> int:
    """Start a real control plane with GPU nodes on this machine.

    Without options a cluster that was stopped comes back as it was.

    Parameters
    ----------
    nodes
        How many nodes (16).
    gpus
        GPUs on each node (8).
    shape
        Zones x blocks x racks x hosts as node labels, for example 2x2x4x8; a fifth number splits
        each rack into that many NVLink cliques.
    pace
        How fast pods become ready and end: fast is at once, slow takes two seconds each.
    port
        The API server's port; 0 picks a free one.
    feature_gates
        For every Kubernetes part, for example GenericWorkload=true,GangScheduling=true.
    runtime_config
        API versions to switch on, for example scheduling.k8s.io/v1alpha2=true.
    audit
        Write an audit log of every request that is not the control plane's own.
    init_containers
        Run the init containers by which pods wait for each other (yes); without, they end at once.
    fabric
        Play NVIDIA's DRA driver (no): nodes have NVLink channels, and ComputeDomains come to life.
    """
    state = state_of(state_dir)
    given = {
        "nodes": nodes, "gpus": gpus, "shape": shape, "pace": pace, "port": port, "audit": audit,
        "init_containers": init_containers, "fabric": fabric,
        "feature_gates": None if feature_gates is None else _gates(feature_gates),
        "runtime_config": None if runtime_config is None else tuple(runtime_config.split(",")),
    }  # fmt: skip
    start(state, {name: value for name, value in given.items() if value is not None})
    return 0


def start(state: StateDir, given: dict[str, object]) -> lifecycle.LocalCluster:
    """Bring a cluster up and tell how to use it."""
    console = Console()
    reporter = ProgressReporter(console)
    settings = settings_for(state, given)
    running = lifecycle.up(state, settings, lambda: binaries.find(reporter), reporter)
    reporter.say(
        f"faster than stock: etcd {' '.join(ETCD_TUNING)}; kube-controller-manager "
        f"{' '.join(CONTROLLER_MANAGER_TUNING)}; kube-scheduler qps {SCHEDULER_TUNING['qps']}"
    )
    reporter.say(f"use it:  export KUBECONFIG={running.kubeconfig}   (or {program()} kubectl get nodes)")
    return running


def down(*, state_dir: StateOption = None, delete: bool = False) -> int:
    """Stop the local cluster. Its data stay for the next `grove up`.

    Parameters
    ----------
    delete
        Remove the data too.
    """
    state = state_of(state_dir)
    removed = delete and state.root.is_dir()
    stopped = lifecycle.down(state, delete=delete)
    said = f"stopped {', '.join(stopped)}" if stopped else "nothing was running"
    _print_line(said + (f", removed {state.root}" if removed else ""))
    return 0


@app.command
def status(
    *,
    state_dir: StateOption = None,
    output: Annotated[Literal["text", "json"], Parameter(alias="-o")] = "text",
) -> int:
    """Which parts run, how they are, and the end of the log of any that died.

    Exits with 0 when every part is healthy, else with 1.
    """
    found = asyncio.run(read_status(state_of(state_dir)))
    if output == "json":
        Console().print_json(found.to_json())
    else:
        _show(found)
    return 0 if found.healthy else 1


@app.command
def prepare() -> int:
    """Find, download or build the programs of the control plane, and start nothing."""
    found = binaries.find(ProgressReporter(Console()))
    for name, path in found.paths.items():
        _print_line(f"{name}  {path}")
    return 0


def kubectl(
    *arguments: Annotated[str, Parameter(allow_leading_hyphen=True)],
    state_dir: StateOption = None,
) -> None:
    """Run kubectl on the local cluster."""
    state = state_of(state_dir)
    if not state.kubeconfig.exists():
        raise LocalError(f"no cluster in {state.root}: run grove up")
    program = str(binaries.find(ProgressReporter(Console(stderr=True)))["kubectl"])
    os.execve(program, ["kubectl", *arguments], {**os.environ, "KUBECONFIG": str(state.kubeconfig)})  # noqa: S606


def state_of(state_dir: Path | None) -> StateDir:
    return StateDir((state_dir or default_state_dir()).expanduser().absolute())


def settings_for(state: StateDir, given: dict[str, object]) -> ClusterSettings:
    """What was asked for, on top of what the cluster was made with, on top of the defaults."""
    before = state.read()
    known: dict[str, object] = (
        {name: getattr(before.settings, name) for name in ClusterSettings.__struct_fields__} if before else {}
    )
    if "shape" in given or "nodes" in given:
        known.pop("nodes", None)
        known.pop("shape", None)
    merged = {"gpus": 8, "init_containers": True, **known, **given}
    shape = (
        parse_shape(str(merged["shape"]))
        if "shape" in merged
        else shape_for(int(str(merged.get("nodes", _DEFAULT_NODES))))
    )
    nodes = int(str(merged.get("nodes", shape.size if "shape" in merged else _DEFAULT_NODES)))
    if not 0 <= nodes <= shape.size:
        raise LocalError(f"--nodes {nodes}: the shape {shape} has room for {shape.size}")
    if not 0 <= int(str(merged["gpus"])) <= 64:
        raise LocalError(f"--gpus {merged['gpus']}: choose between 0 and 64 a node")
    return ClusterSettings(**{**merged, "shape": str(shape), "nodes": nodes})  # type: ignore[arg-type]


def program() -> str:
    """How this user can call us: by name if that is on PATH, else by path."""
    if shutil.which("grove"):
        return "grove"
    called = Path(sys.argv[0]).absolute()
    return str(called.relative_to(Path.cwd()) if called.is_relative_to(Path.cwd()) else called)


def _gates(text: str) -> dict[str, bool]:
    gates: dict[str, bool] = {}
    for item in filter(None, text.split(",")):
        name, _, value = item.partition("=")
        if not name or value.lower() not in ("true", "false"):
            raise LocalError(f"--feature-gates {item!r}: write Name=true or Name=false")
        gates[name] = value.lower() == "true"
    return gates


def _show(found: ClusterStatus) -> None:
    console = Console()
    _print_line(f"{found.state_dir}  {found.server}")
    table = Table(box=None, pad_edge=False)
    for heading in ("PART", "STATE", "PID", "PORT", "FROM"):
        table.add_column(heading)
    for part in found.parts:
        colour = "green" if part.state == "healthy" else "red"
        table.add_row(
            part.name, f"[{colour}]{part.state}", str(part.pid or "-"), str(part.port or "-"), part.origin
        )
    console.print(table)
    if found.nodes is not None:
        console.print(f"{found.ready_nodes} of {found.nodes} nodes ready", highlight=False)
    for part in found.parts:
        if part.last_words:
            _print_line(f"\nthe end of {part.log}:\n", style="bold")
            _print_line(part.last_words)


def _print_line(line: str, style: str = "") -> None:
    """As it is: paths may have brackets in them."""
    Console().print(line, style=style, markup=False, highlight=False, soft_wrap=True)
