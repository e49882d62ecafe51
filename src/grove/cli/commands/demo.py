"""`grove demo`: deploys a sample workload on a local cluster and shows what happens.

Starts a cluster, an operator and a dashboard, deploys a set and watches it until it is ready, scales a group
out and watches again, draws which gang is in which rack, and deploys a second set that does not fit. Cluster,
operator, dashboard and workloads keep running; `grove down --delete` removes them. An interrupted demo
removes what it has created itself.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from rich.console import Console

from grove.api.naming import annotations as keys
from grove.api.naming import names
from grove.api.types.clustertopology import ClusterTopology
from grove.api.types.kubernetes_objects import Node
from grove.api.types.podcliquescalinggroup import PodCliqueScalingGroup
from grove.api.types.podcliqueset import PodCliqueSet
from grove.cli.command_logs import log_later
from grove.cli.commands.cluster import StateOption, program, start, state_of
from grove.cli.commands.common import show
from grove.cli.commands.crd_install import install
from grove.cli.console import open_console, output_width
from grove.cli.views.live.demo_screen import screen
from grove.cli.views.live.set_watcher import SetWatcher
from grove.cli.views.racks.node_tree import topology_tree
from grove.cli.views.racks.rack_view import drawing
from grove.cli.views.text_layout import lines, tree
from grove.fabrics.nvidia import Nvidia
from grove.fabrics.provider import Domain
from grove.kube import yaml_parser
from grove.kube.auth import config
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.errors import AlreadyExists, NotFound
from grove.local.cluster import lifecycle as local
from grove.local.cluster.dashboard_process import (
    DASHBOARD,
    ensure_dashboard,
    has_dashboard,
    stop_dashboard,
)
from grove.local.cluster.nodes import read_nodes
from grove.local.cluster.operator_process import (
    ensure_operator,
    operator_of,
    raise_when_exited,
    remove_operator,
)
from grove.local.cluster.processes import Process
from grove.local.errors import LocalError
from grove.local.standins.dra.objects import DOMAINS
from grove.local.state_dir import StateDir
from grove.operator.caches.resources import resource_of

MANIFESTS = Path(__file__).parents[1] / "demo"
TOPOLOGY, WORKLOAD, TRAINING = (MANIFESTS / f"{each}.yaml" for each in ("topology", "workload", "training"))
SETS, GROUPS = resource_of(PodCliqueSet.KIND), resource_of(PodCliqueScalingGroup.KIND)
TOPOLOGIES = resource_of(ClusterTopology.KIND)
NAMESPACE, NAME, SECOND, GROUP = "default", "demo", "training", names.group("demo", 0, "decode")
SCALED_REPLICAS = 3
SHAPE = "1x2x2x8"

_READY_TIMEOUT = 180.0  # seconds; a step takes ten on an idle machine
_DELETE_TIMEOUT = 90.0  # seconds; deletion takes two on an idle machine, and a second Ctrl-C ends the wait


def demo(*, state_dir: StateOption = None, fabric: bool = False) -> int:
    """Start a local cluster of GPU nodes, deploy a prefill/decode workload, and scale it out.

    Parameters
    ----------
    fabric
        Use multi-node NVLink: GPU pods wait until the ComputeDomain of their replica is ready.
    """
    state, console = state_of(state_dir), open_console()
    # A watch on a kind that is not served yet logs a warning: expected here, and it disturbs the live view.
    log_later("error")
    before = _InitialState(state)
    try:
        wanted: dict[str, object] = {} if before.existed else {"shape": SHAPE}
        cluster = start(state, {**wanted, "fabric": True} if fabric else wanted)
        console.print()
        nodes = asyncio.run(read_nodes(cluster.kubeconfig))
        console.print(topology_tree(nodes))
        address = asyncio.run(_Demo(state, console, before, nodes, fabric).play())
    except KeyboardInterrupt:
        before.restore(state)
        raise
    if address:
        console.print(f"\n[bold]the dashboard[/] is at {address}", highlight=False, soft_wrap=True)
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
        self.shown = self.existed and has_dashboard(state)

    def restore(self, state: StateDir) -> None:
        """Undo the demo: stop what did not run before, delete what did not exist."""
        if not self.ran:
            local.down(state, delete=not self.existed)
            return
        if not self.shown:
            stop_dashboard(state)
        if not self.operated:
            asyncio.run(_remove_operator(state))


async def _remove_operator(state: StateDir) -> None:
    async with Client(config.load(state.kubeconfig)) as client:
        await remove_operator(state, client)


class _Demo:
    """The steps of the demo; each is shown until it has finished."""

    def __init__(
        self, state: StateDir, console: Console, before: _InitialState, nodes: list[Node], fabric: bool
    ) -> None:
        self._state, self._console, self._before = state, console, before
        self._nodes, self._fabric = nodes, fabric
        self._watching = SetWatcher(NAMESPACE)

    async def play(self) -> str:
        """Run all steps, and return the address of the dashboard; empty if it did not start. If interrupted
        on a cluster that ran before, delete the workload."""
        async with Client(config.load(self._state.kubeconfig)) as client:
            await install(client)
            self._say(
                "starting the operator, with webhooks and the rights of the chart",
                f"log: {self._state.log('operator')}",
            )
            operator = await ensure_operator(self._state, client)
            address = await self._start_dashboard()
            async with self._watching.on(client):
                try:
                    await self._steps(client, operator)
                except asyncio.CancelledError:
                    if self._before.ran:
                        with suppress(LocalError):
                            await self._remove(client, operator, _DELETE_TIMEOUT)
                    raise
        return address

    async def _start_dashboard(self) -> str:
        """Print and return the address of the dashboard. The demo goes on without it."""
        try:
            address = await ensure_dashboard(self._state)
        except LocalError as error:
            self._say("the dashboard did not start", f"{error} (log: {self._state.log(DASHBOARD)})")
            return ""
        self._say("the dashboard, live from here on", address)
        return address

    async def _steps(self, client: Client, operator: Process) -> None:
        if any(map(self._watching.view, (NAME, SECOND))):
            self._say("deleting the workloads of the previous demo")
            await self._remove(client, operator, _READY_TIMEOUT)
        self._say("the levels of the cluster as a ClusterTopology", str(TOPOLOGY))
        with suppress(AlreadyExists):
            await client.create(TOPOLOGIES, manifest(TOPOLOGY), as_type=Object)
        self._say(
            "deploying a PodCliqueSet: a router and two scaling groups, with a startup order", str(WORKLOAD)
        )
        await client.create(SETS, manifest(WORKLOAD), namespace=NAMESPACE, as_type=Object)
        await self._until(operator, self._ready)
        if self._fabric:
            await self._domains(client)
        self._tree(NAME, pods=False)
        self._say(f"scaling {GROUP} out to {SCALED_REPLICAS} replicas: each new replica is a gang of its own")
        await client.set_scale(GROUPS, GROUP, SCALED_REPLICAS, namespace=NAMESPACE)
        await self._until(operator, lambda: self._ready() and self._scaled())
        self._say(f"the objects of the set ({program()} tree)")
        self._tree(NAME, pods=True)
        await self._second(client, operator)

    async def _second(self, client: Client, operator: Process) -> None:
        """Deploy the set of which one gang does not fit, and draw the racks."""
        self._say(
            "deploying a second set: each of its replicas needs the hosts of a whole rack", str(TRAINING)
        )
        await client.create(SETS, without_fabric(manifest(TRAINING)), namespace=NAMESPACE, as_type=Object)
        await self._until(operator, self._settled, SECOND)
        self._tree(SECOND, pods=False)
        self._say("each gang is in one rack; the one that does not fit waits, and has no pod on a node")
        views = [view for view in map(self._watching.view, (NAME, SECOND)) if view is not None]
        for line in drawing(self._nodes, views, self._console.width):
            self._console.print(line, no_wrap=True, overflow="crop", highlight=False)

    async def _domains(self, client: Client) -> None:
        """Print the ComputeDomains that the pods have joined."""
        self._say("each GPU pod waited for the NVLink domain of its replica and has joined it")
        for domain in (await client.list(DOMAINS, namespace=NAMESPACE, as_type=Domain)).items:
            view = Nvidia().observe(domain)
            counts = f"{view.ready_nodes} of {view.total_nodes} nodes ready, on {len(view.partitions)} racks"
            self._console.print(f"  ComputeDomain {domain.metadata.name}: {counts}", highlight=False)

    async def _remove(self, client: Client, operator: Process, seconds: float) -> None:
        for name in (NAME, SECOND):
            with suppress(NotFound):
                await client.delete(SETS, name, namespace=NAMESPACE, as_type=Object)
        with suppress(NotFound):
            await client.delete(TOPOLOGIES, NAME, as_type=Object)
        await self._until(operator, lambda: all(map(self._watching.gone, (NAME, SECOND))), seconds=seconds)

    async def _until(
        self, operator: Process, done: Callable[[], bool], name: str = NAME, seconds: float = _READY_TIMEOUT
    ) -> None:
        """Show a set until `done` holds. Raises LocalError on timeout, or if the operator exits."""
        operator_exit = asyncio.create_task(raise_when_exited(self._state, operator))
        with screen(self._console, self._watching.view(name)) as shown:
            watching = asyncio.create_task(self._watching.until(done, name, shown))
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
        return (view := self._watching.view(NAME)) is not None and view.ready

    def _settled(self) -> bool:
        return (view := self._watching.view(SECOND)) is not None and view.settled

    def _scaled(self) -> bool:
        view = self._watching.view(NAME)
        return view is not None and any(
            g.name == GROUP and len(g.members) == SCALED_REPLICAS for g in view.groups
        )

    def _tree(self, name: str, *, pods: bool) -> None:
        if (view := self._watching.view(name)) is not None:
            show(lines(tree(view, pods=pods), output_width(self._console)), self._console)

    def _say(self, title: str, detail: str = "") -> None:
        self._console.print(f"\n[bold]{title}[/]", highlight=False, soft_wrap=True)
        if detail:
            self._console.print(f"  {detail}", style="dim", highlight=False, soft_wrap=True)


def manifest(file: Path) -> dict[str, Any]:
    """An object to deploy."""
    body = yaml_parser.parse(file.read_text(encoding="utf-8"))
    assert isinstance(body, dict)
    return body


def without_fabric(body: dict[str, Any]) -> dict[str, Any]:
    """The set without an NVLink domain, also where MNNVL is automatic: its pods would wait for the nodes
    whose channels the first set uses."""
    annotations = {keys.AUTO_MNNVL: keys.AUTO_MNNVL_DISABLED}
    return {**body, "metadata": {**body["metadata"], "annotations": annotations}}


def next_commands(grove: str, state: StateDir, fabric: bool = False) -> tuple[str, ...]:
    """Shell commands to try after the demo."""
    all_run = f"--for=jsonpath={{.status.availableReplicas}}=3 pcs/{SECOND}"
    here = state.option
    return (
        f"export KUBECONFIG={shlex.quote(str(state.kubeconfig))}",
        f"{grove} get",
        f"{grove} tree --no-pods",
        f"{grove} kubectl{here} get grove",
        *((f"{grove} kubectl{here} describe computedomains",) if fabric else ()),
        f"{grove} kubectl{here} scale pcsg {GROUP} --replicas 1",
        f"{grove} kubectl{here} wait {all_run} --timeout 1m",
        f"{grove} kubectl{here} delete pcs {SECOND}",
        f"{grove} kubectl{here} scale pclq demo-0-router --replicas 0",
        f"{grove} kubectl{here} scale pcs demo --replicas 2",
        f"{grove} down{here} --delete" if here else "make down",
    )
