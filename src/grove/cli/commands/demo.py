"""`grove demo`: deploys a sample workload on a local cluster and shows what happens.

Starts a cluster and an operator process, deploys a set and watches it until it is ready, scales a group out
and watches again. Cluster, operator and workload keep running; `grove down --delete` removes them. An
interrupted demo removes what it has created itself.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import structlog
from rich.console import Console

from grove.api.naming import annotations as keys
from grove.api.naming import names
from grove.api.types.podcliquescalinggroup import PodCliqueScalingGroup
from grove.api.types.podcliqueset import PodCliqueSet
from grove.cli.commands.cluster import StateOption, program, start, state_of
from grove.cli.commands.common import output_width, show
from grove.cli.commands.crd_install import install
from grove.cli.views.live_view import SetWatcher, screen
from grove.cli.views.node_tree import topology_tree
from grove.cli.views.text_layout import lines, tree
from grove.fabrics.nvidia import Nvidia
from grove.fabrics.provider import Domain
from grove.kube import yaml_parser
from grove.kube.auth import config
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.errors import NotFound
from grove.local.cluster import lifecycle as local
from grove.local.cluster.nodes import read_nodes
from grove.local.cluster.operator_process import (
    ensure_operator,
    operator_of,
    raise_when_exited,
    stop_operator,
)
from grove.local.cluster.processes import Process
from grove.local.errors import LocalError
from grove.local.paths import default_state_dir
from grove.local.standins.dra.objects import DOMAINS
from grove.local.state_dir import StateDir
from grove.operator.caches.registry import resource_of

WORKLOAD = Path(__file__).parents[1] / "demo.yaml"
SETS, GROUPS = resource_of(PodCliqueSet.KIND), resource_of(PodCliqueScalingGroup.KIND)
NAMESPACE, NAME, GROUP = "default", "demo", names.group("demo", 0, "decode")
SCALED_REPLICAS = 3

_SHAPE = "1x2x2x4"
_READY_TIMEOUT = 180.0  # seconds; a step takes ten on an idle machine
_DELETE_TIMEOUT = 90.0  # seconds; deletion takes two on an idle machine, and a second Ctrl-C ends the wait


def demo(*, state_dir: StateOption = None, fabric: bool = False) -> int:
    """Start a local cluster of GPU nodes, deploy a prefill/decode workload, and scale it out.

    Parameters
    ----------
    fabric
        Use multi-node NVLink: GPU pods wait until the ComputeDomain of their replica is ready.
    """
    state, console = state_of(state_dir), Console()
    # A watch on a kind that is not served yet logs a warning: expected here, and it disturbs the live view.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    before = _InitialState(state)
    try:
        wanted: dict[str, object] = {} if before.existed else {"shape": _SHAPE}
        cluster = start(state, {**wanted, "fabric": True} if fabric else wanted)
        console.print()
        console.print(topology_tree(asyncio.run(read_nodes(cluster.kubeconfig))))
        asyncio.run(_Demo(state, console, before, fabric).play())
    except KeyboardInterrupt:
        before.restore(state)
        raise
    console.print("\n[bold]next commands to try[/]", highlight=False)
    for command in next_commands(program(), state, fabric):
        console.print(f"  {command}", markup=False, highlight=False, soft_wrap=True)
    return 0


class _InitialState:
    """What existed and ran before the demo."""

    def __init__(self, state: StateDir) -> None:
        self.existed = state.read() is not None
        self.ran = self.existed and bool(local.running(state))
        self.operated = self.existed and operator_of(state) is not None

    def restore(self, state: StateDir) -> None:
        """Undo the demo: stop what did not run before, delete what did not exist."""
        if not self.ran:
            local.down(state, delete=not self.existed)
        elif not self.operated:
            stop_operator(state)


class _Demo:
    """The steps of the demo; each is shown until it has finished."""

    def __init__(self, state: StateDir, console: Console, before: _InitialState, fabric: bool) -> None:
        self._state, self._console, self._before, self._fabric = state, console, before, fabric
        self._watching = SetWatcher(NAMESPACE, NAME)

    async def play(self) -> None:
        """Run all steps. If interrupted on a cluster that ran before, delete the workload."""
        async with Client(config.load(self._state.kubeconfig)) as client:
            await install(client)
            self._say("starting the operator", f"log: {self._state.log('operator')}")
            operator = ensure_operator(self._state)
            async with self._watching.on(client):
                try:
                    await self._steps(client, operator)
                except asyncio.CancelledError:
                    if self._before.ran:
                        with suppress(LocalError):
                            await self._remove(client, operator, _DELETE_TIMEOUT)
                    raise

    async def _steps(self, client: Client, operator: Process) -> None:
        if self._watching.view is not None:
            self._say("deleting the workload of the previous demo")
            await self._remove(client, operator, _READY_TIMEOUT)
        self._say(
            "deploying a PodCliqueSet: a router and two scaling groups, with a startup order", str(WORKLOAD)
        )
        await client.create(SETS, workload(self._fabric), namespace=NAMESPACE, as_type=Object)
        await self._until(operator, self._ready)
        if self._fabric:
            await self._domains(client)
        self._tree(pods=False)
        self._say(f"scaling {GROUP} out to {SCALED_REPLICAS} replicas: each new replica is a gang of its own")
        await client.set_scale(GROUPS, GROUP, SCALED_REPLICAS, namespace=NAMESPACE)
        await self._until(operator, lambda: self._ready() and self._scaled())
        self._say(f"the objects of the set ({program()} tree)")
        self._tree(pods=True)

    async def _domains(self, client: Client) -> None:
        """Print the ComputeDomains that the pods have joined."""
        self._say("each GPU pod waited for the NVLink domain of its replica and has joined it")
        for domain in (await client.list(DOMAINS, namespace=NAMESPACE, as_type=Domain)).items:
            view = Nvidia().observe(domain)
            counts = f"{view.ready_nodes} of {view.total_nodes} nodes ready, on {len(view.partitions)} racks"
            self._console.print(f"  ComputeDomain {domain.metadata.name}: {counts}", highlight=False)

    async def _remove(self, client: Client, operator: Process, seconds: float) -> None:
        with suppress(NotFound):
            await client.delete(SETS, NAME, namespace=NAMESPACE, as_type=Object)
        await self._until(operator, lambda: self._watching.empty, seconds)

    async def _until(
        self, operator: Process, done: Callable[[], bool], seconds: float = _READY_TIMEOUT
    ) -> None:
        """Show the set until `done` holds. Raises LocalError on timeout, or if the operator exits."""
        operator_exit = asyncio.create_task(raise_when_exited(self._state, operator))
        with screen(self._console, self._watching.view) as shown:
            watching = asyncio.create_task(self._watching.until(done, shown))
            try:
                ended, _ = await asyncio.wait(
                    (watching, operator_exit), timeout=seconds, return_when=asyncio.FIRST_COMPLETED
                )
            finally:
                for task in (watching, operator_exit):
                    task.cancel()
                await asyncio.wait((watching, operator_exit))
        if not ended:
            raise LocalError(
                f"not finished within {seconds:.0f} s: {program()} tree shows the state of the set, "
                f"{self._state.log('operator')} is the log of the operator"
            )
        ended.pop().result()

    def _ready(self) -> bool:
        return (view := self._watching.view) is not None and view.ready

    def _scaled(self) -> bool:
        view = self._watching.view
        return view is not None and any(
            g.name == GROUP and len(g.members) == SCALED_REPLICAS for g in view.groups
        )

    def _tree(self, *, pods: bool) -> None:
        if (view := self._watching.view) is not None:
            show(lines(tree(view, pods=pods), output_width(self._console)), self._console)

    def _say(self, title: str, detail: str = "") -> None:
        self._console.print(f"\n[bold]{title}[/]", highlight=False, soft_wrap=True)
        if detail:
            self._console.print(f"  {detail}", style="dim", highlight=False, soft_wrap=True)


def workload(fabric: bool = False) -> dict[str, Any]:
    """The PodCliqueSet to deploy; with a fabric, annotated as admission does it where MNNVL is automatic."""
    body = yaml_parser.parse(WORKLOAD.read_text(encoding="utf-8"))
    assert isinstance(body, dict)
    if fabric:
        body["metadata"]["annotations"] = {keys.AUTO_MNNVL: keys.AUTO_MNNVL_ENABLED}
    return body


def next_commands(grove: str, state: StateDir, fabric: bool = False) -> tuple[str, ...]:
    """Shell commands to try after the demo."""
    here = "" if state.root == default_state_dir() else f" --state-dir {state.root}"
    return (
        f"export KUBECONFIG={state.kubeconfig}",
        f"{grove} get",
        f"{grove} tree --no-pods",
        f"{grove} kubectl{here} get grove",
        *((f"{grove} kubectl{here} describe computedomains",) if fabric else ()),
        f"{grove} kubectl{here} scale pcsg {GROUP} --replicas 1",
        f"{grove} kubectl{here} scale pclq demo-0-router --replicas 0",
        f"{grove} kubectl{here} scale pcs demo --replicas 2",
        f"{grove} down --delete{here}" if here else "make down",
    )
