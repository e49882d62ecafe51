"""`grove up`, `grove down`, `grove cluster`, `grove kubectl`: a local Kubernetes control plane."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter
from rich.table import Table

from grove.cli.commands.crd_install import install as install_crds
from grove.cli.console import open_console
from grove.cli.exit_codes import ExitCode
from grove.kube.auth import config
from grove.kube.client.client import Client
from grove.local.build import binaries
from grove.local.build.versions import KUBERNETES, default_minor, minor_version
from grove.local.cluster import lifecycle
from grove.local.cluster.cluster_shape import parse_shape, shape_for
from grove.local.cluster.command_lines import CONTROLLER_MANAGER_TUNING, ETCD_TUNING, SCHEDULER_TUNING
from grove.local.cluster.operator_process import OPERATOR, ensure_operator, has_operator, remove_operator
from grove.local.cluster.status import ClusterStatus, read_status
from grove.local.errors import LocalError
from grove.local.paths import default_state_dir
from grove.local.progress import ProgressReporter
from grove.local.state_dir import ClusterSettings, StateDir

app = App(name="cluster", help="Show the local cluster, or prepare its programs.")

StateOption = Annotated[
    Path | None, Parameter(help="State directory, one per cluster; default: ~/.local/state/grove/default.")
]
_DEFAULT_NODES = 16


def up(
    *,
    state_dir: StateOption = None,
    kubernetes: str | None = None,
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
    operator: bool | None = None,
) -> int:
    """Start a Kubernetes control plane with simulated GPU nodes on this machine.

    Without options a stopped cluster starts again with its previous settings.

    Parameters
    ----------
    kubernetes
        Minor version of Kubernetes: 1.37, 1.36, 1.35 or 1.34 ($GROVE_KUBERNETES, or 1.37). A stopped cluster
        keeps its data when it starts again with a newer version.
    nodes
        Number of nodes (16).
    gpus
        Number of GPUs per node (8).
    shape
        Zones x blocks x racks x hosts as node labels, for example 2x2x4x8; a fifth number splits
        each rack into that many NVLink cliques.
    pace
        How fast pods become ready and terminate: fast is at once, slow takes two seconds each.
    port
        The API server's port; 0 picks a free one.
    feature_gates
        Feature gates of all Kubernetes components, for example GenericWorkload=true.
    runtime_config
        API versions to enable, for example scheduling.k8s.io/v1beta1=true.
    audit
        Write an audit log of all requests except those of the control plane itself.
    init_containers
        Run the init containers that enforce the startup order (yes); otherwise they complete at once.
    fabric
        Simulate NVIDIA's DRA driver (no): nodes have NVLink channels, and ComputeDomains become ready.
    operator
        Run the operator as the chart installs it (no): CRDs, rights, certificate and webhooks. Its log is
        in the state directory.
    """
    state = state_of(state_dir)
    given = {
        "nodes": nodes, "gpus": gpus, "shape": shape, "pace": pace, "port": port, "audit": audit,
        "init_containers": init_containers, "fabric": fabric,
        "kubernetes": None if kubernetes is None else minor_version(kubernetes),
        "feature_gates": None if feature_gates is None else _gates(feature_gates),
        "runtime_config": None if runtime_config is None else tuple(runtime_config.split(",")),
    }  # fmt: skip
    start(state, {name: value for name, value in given.items() if value is not None})
    if operator if operator is not None else has_operator(state):
        asyncio.run(_start_operator(state))
    elif operator is False:
        asyncio.run(_remove_operator(state))
    return 0


async def _start_operator(state: StateDir) -> None:
    async with Client(config.load(state.kubeconfig)) as client:
        await install_crds(client)
        process = await ensure_operator(state, client)
    _print_line(f"operator ready (pid {process.pid}), with webhooks; log: {state.log(OPERATOR)}")


async def _remove_operator(state: StateDir) -> None:
    async with Client(config.load(state.kubeconfig)) as client:
        if await remove_operator(state, client):
            _print_line("stopped the operator, and removed its webhooks")


def start(state: StateDir, given: dict[str, object]) -> lifecycle.LocalCluster:
    """Start a cluster and print how to use it."""
    console = open_console()
    reporter = ProgressReporter(console)
    settings = settings_for(state, given)
    running = lifecycle.up(state, settings, lambda minor: binaries.find(minor, reporter), reporter)
    reporter.say(
        f"tuned for speed: etcd {' '.join(ETCD_TUNING)}; kube-controller-manager "
        f"{' '.join(CONTROLLER_MANAGER_TUNING)}; kube-scheduler qps {SCHEDULER_TUNING['qps']}"
    )
    kubeconfig, kubectl = shlex.quote(str(running.kubeconfig)), f"{program()} kubectl{state.option}"
    reporter.say(f"use it:  export KUBECONFIG={kubeconfig}   (or {kubectl} get nodes)")
    return running


def down(*, state_dir: StateOption = None, delete: bool = False) -> int:
    """Stop the local cluster. Its data is kept for the next `grove up`.

    Parameters
    ----------
    delete
        Delete the data as well.
    """
    state = state_of(state_dir)
    removed = delete and state.root.is_dir()
    stopped = lifecycle.down(state, delete=delete)
    result = f"stopped {', '.join(stopped)}" if stopped else "nothing was running"
    _print_line(result + (f", removed {state.root}" if removed else ""))
    return 0


@app.command
def status(
    *,
    state_dir: StateOption = None,
    output: Annotated[
        Literal["table", "json"], Parameter(alias="-o", help="Format: table or json.")
    ] = "table",
) -> int:
    """Show the components of the cluster, their health, and the last log lines of any that exited.

    Exit codes: 0 all components are healthy; 2 otherwise.
    """
    found = asyncio.run(read_status(state_of(state_dir)))
    if output == "json":
        open_console().print_json(found.to_json())
    else:
        _show(found)
    return ExitCode.OK if found.healthy else ExitCode.PROBLEM


@app.command
def prepare(*, kubernetes: str | None = None, only_check: bool = False) -> int:
    """Find, download or build the programs of the control plane, without starting a cluster.

    Exit codes: 0 the programs are there; 2 with --only-check, some are not.

    Parameters
    ----------
    kubernetes
        Minor version of Kubernetes: 1.37, 1.36, 1.35 or 1.34 ($GROVE_KUBERNETES, or 1.37).
    only_check
        Neither download nor build.
    """
    minor = default_minor() if kubernetes is None else minor_version(kubernetes)
    if only_check and not binaries.available(minor):
        _print_line(f"the programs of Kubernetes {KUBERNETES[minor]} are not on this machine")
        return ExitCode.PROBLEM
    found = binaries.find(minor, ProgressReporter(open_console()))
    for name, path in found.paths.items():
        _print_line(f"{name}  {path}")
    return 0


def kubectl(
    *arguments: Annotated[str, Parameter(allow_leading_hyphen=True)],
    state_dir: StateOption = None,
) -> None:
    """Run kubectl against the local cluster."""
    state = state_of(state_dir)
    record = state.read()
    if record is None or not state.kubeconfig.exists():
        raise LocalError(f"no cluster in {state.root}: run grove up{state.option}")
    found = binaries.find(record.settings.kubernetes, ProgressReporter(open_console(stderr=True)))
    program = str(found["kubectl"])
    os.execve(program, ["kubectl", *arguments], {**os.environ, "KUBECONFIG": str(state.kubeconfig)})  # noqa: S606


def state_of(state_dir: Path | None) -> StateDir:
    return StateDir((state_dir or default_state_dir()).expanduser().absolute())


def settings_for(state: StateDir, given: dict[str, object]) -> ClusterSettings:
    """Merge settings: the given options override those of the existing cluster, which override defaults."""
    before = state.read()
    known: dict[str, object] = (
        {name: getattr(before.settings, name) for name in ClusterSettings.__struct_fields__} if before else {}
    )
    if "shape" in given or "nodes" in given:
        known.pop("nodes", None)
        known.pop("shape", None)
    merged = {"kubernetes": default_minor(), "gpus": 8, "init_containers": True, **known, **given}
    shape = (
        parse_shape(str(merged["shape"]))
        if "shape" in merged
        else shape_for(int(str(merged.get("nodes", _DEFAULT_NODES))))
    )
    nodes = int(str(merged.get("nodes", shape.size if "shape" in merged else _DEFAULT_NODES)))
    if not 0 <= nodes <= shape.size:
        raise LocalError(
            f"--nodes {nodes}: the shape {shape} has {shape.size} hosts: use fewer nodes or a larger shape"
        )
    if not 0 <= int(str(merged["gpus"])) <= 64:
        raise LocalError(f"--gpus {merged['gpus']}: choose between 0 and 64 per node")
    return ClusterSettings(**{**merged, "shape": str(shape), "nodes": nodes})  # type: ignore[arg-type]


def program() -> str:
    """The command that starts `grove` from the user's shell: its name if that is on PATH, else its path."""
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
    console = open_console()
    _print_line(f"{found.state_dir}  {found.server}")
    table = Table(box=None, pad_edge=False)
    for heading in ("COMPONENT", "STATE", "PID", "PORT", "ORIGIN"):
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
            _print_line(f"\nlast lines of {part.log}:\n", style="bold")
            _print_line(part.last_words)


def _print_line(line: str, style: str = "") -> None:
    """Print a line without markup: paths may contain brackets."""
    open_console().print(line, style=style, markup=False, highlight=False, soft_wrap=True)
