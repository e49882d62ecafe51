"""One local cluster: bring it up, take it down, tell how it is.

`up` may be called on nothing, on a stopped cluster, on a half-started one and on a running one; it
starts what does not run. Whatever it started it stops again if it cannot finish or is interrupted.
"""

from __future__ import annotations

import asyncio
import datetime
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from grove.kube.errors import ConnectError
from grove.local import components, ports
from grove.local.binaries import Binaries
from grove.local.companion import OPERATOR, stop_operator
from grove.local.errors import LocalError
from grove.local.health import Probe, wait_until_healthy
from grove.local.nodes import ensure_nodes
from grove.local.pki import Pki, issue_all, write_kubeconfig, write_private
from grove.local.processes import Process, recall, spawn, stop, tail
from grove.local.progress import Reporter
from grove.local.state import Ports, Record, Settings, StateDir

PARTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")
STAND_INS = (components.INIT_CONTAINERS, components.DRA_STANDIN)
_PATIENCE = {"kube-apiserver": 3.0, "etcd": 3.0}  # seconds until a part that was asked to end is made to
_TRIES = 3


class PortTaken(LocalError):
    """Somebody took a port between our choosing it and a part's binding it."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster that runs."""

    state: StateDir
    record: Record

    @property
    def kubeconfig(self) -> Path:
        return self.state.kubeconfig

    @property
    def server(self) -> str:
        return f"https://{components.LOOPBACK}:{self.record.ports.apiserver}"


def up(state: StateDir, settings: Settings, find: Callable[[], Binaries], reporter: Reporter) -> Cluster:
    """Start what does not run and wait until the cluster can be used."""
    state.prepare()
    with state.lock():
        before = state.read()
        if before:
            _refuse_another_cluster(state, before.settings, settings)
        if before and set(parts_of(before.settings)) <= running(state).keys():
            reporter.say(f"already running: {state.root}")
            cluster = Cluster(state, before)
            try:
                asyncio.run(ensure_nodes(cluster.kubeconfig, before.settings, reporter))
            except ConnectError as error:
                raise LocalError(f"{error}; to start it anew: grove down, then grove up") from None
            return cluster
        try:
            cluster = _start(state, settings, before, find(), reporter)
            asyncio.run(ensure_nodes(cluster.kubeconfig, settings, reporter))
        except BaseException:
            stop_parts(state)
            raise
        return cluster


def down(state: StateDir, *, delete: bool = False) -> list[str]:
    """Stop every part; the data stay unless they are to be deleted. Returns what was stopped."""
    if not state.root.is_dir():
        return []
    if not (state.root / "run").is_dir():
        raise LocalError(f"{state.root} holds no cluster of ours: nothing done")
    with state.lock():
        beside = [OPERATOR] if stop_operator(state) else []
        stopped = beside + stop_parts(state)
        if delete:
            state.remove()
    return stopped


def parts_of(settings: Settings) -> tuple[str, ...]:
    """What a cluster consists of."""
    chosen = (settings.init_containers, settings.fabric)
    return (*PARTS, *(part for part, wanted in zip(STAND_INS, chosen, strict=True) if wanted))


def running(state: StateDir) -> dict[str, Process]:
    """The parts that run, whoever started them."""
    return {name: process for name in (*PARTS, *STAND_INS) if (process := recall(state.pid(name)))}


def stop_parts(state: StateDir, names: tuple[str, ...] = (*PARTS, *STAND_INS)) -> list[str]:
    """Clients first, then the API server, then the store; all of them, even if one resists."""
    stopped: list[str] = []
    stubborn: list[str] = []
    for name in reversed(names):
        if process := recall(state.pid(name)):
            try:
                stop(process, _PATIENCE.get(name, 1.0))
                stopped.append(name)
            except LocalError as error:
                stubborn.append(f"{name}: {error}")
                continue
        state.pid(name).unlink(missing_ok=True)
    if stubborn:
        raise LocalError("; ".join(stubborn))
    return stopped


def _refuse_another_cluster(state: StateDir, made: Settings, asked: Settings) -> None:
    """Options that shape the cluster cannot change under it."""
    alive = bool(running(state))
    fixed = ("nodes", "gpus", "shape") + (Settings.__struct_fields__ if alive else ())
    for name in fixed:
        is_, wanted = getattr(made, name), getattr(asked, name)
        if is_ != wanted:
            option = "--" + name.replace("_", "-")
            remedy = "grove down first" if alive and name not in fixed[:3] else "grove down --delete first"
            raise LocalError(
                f"the cluster in {state.root} has {option} {is_}, asked for is {wanted}: run {remedy}"
            )


def _start(
    state: StateDir, settings: Settings, before: Record | None, binaries: Binaries, reporter: Reporter
) -> Cluster:
    """Start the parts; ports that nobody asked for are chosen anew if somebody was faster."""
    stop_parts(state)  # a half-started or half-dead cluster is started as a whole
    reporter.say(f"starting {', '.join(parts_of(settings))} in {state.root}")
    for attempt in range(_TRIES):
        chosen = _ports(settings, before if attempt == 0 else None)
        record = Record(settings=settings, ports=chosen, origins=dict(binaries.origins))
        state.write(record)
        try:
            _start_parts(state, record, binaries, reporter)
        except PortTaken:
            if settings.port or attempt == _TRIES - 1:
                raise
            stop_parts(state)
        else:
            break
    return Cluster(state, record)


def _ports(settings: Settings, before: Record | None) -> Ports:
    """The ports of last time, so that kubeconfigs stay good, if they are still free."""
    if before and before.settings.port == settings.port:
        last = before.ports
        if all(ports.is_free(getattr(last, name)) for name in Ports.__struct_fields__):
            return last
    return ports.choose(settings.port)


def _start_parts(state: StateDir, record: Record, binaries: Binaries, reporter: Reporter) -> None:
    pki = issue_all(state.pki, datetime.datetime.now(datetime.UTC))
    _write_configuration(state, record, pki)
    lines = _command_lines(state, record, binaries, pki)
    ca = pki.pair("ca").cert
    listening = record.ports
    waits = {
        "etcd": [Probe("etcd", listening.etcd)],
        "kube-apiserver": [Probe("kube-apiserver", listening.apiserver, "/readyz")],
        "kwok": [
            Probe("kube-controller-manager", listening.controller_manager, "/healthz"),
            Probe("kube-scheduler", listening.scheduler, "/readyz"),
            Probe("kwok", listening.kwok),
        ],
    }
    started: dict[str, Process] = {}
    for name in parts_of(record.settings):
        started[name] = spawn(lines[name], state.log(name), state.pid(name))
        for probe in waits.get(name, ()):
            wait_until_healthy(probe, ca, lambda: _refuse_the_dead(state, started))
    reporter.say(f"control plane ready at https://{components.LOOPBACK}:{listening.apiserver}")


def _refuse_the_dead(state: StateDir, started: dict[str, Process]) -> None:
    for name, process in started.items():
        if not process.alive:
            last = tail(state.log(name))
            kind = PortTaken if "address already in use" in last else LocalError
            raise kind(f"{name} ended while starting; the end of {state.log(name)}:\n{last}")


def _command_lines(state: StateDir, record: Record, binaries: Binaries, pki: Pki) -> dict[str, list[str]]:
    settings, chosen = record.settings, record.ports
    return {
        "etcd": components.etcd(binaries["etcd"], state, chosen, pki),
        "kube-apiserver": components.apiserver(binaries["kube-apiserver"], state, settings, chosen, pki),
        "kube-controller-manager": components.controller_manager(
            binaries["kube-controller-manager"], state, settings, chosen, pki
        ),
        "kube-scheduler": components.scheduler(binaries["kube-scheduler"], state, settings, chosen, pki),
        "kwok": components.kwok(binaries["kwok"], state, chosen),
        components.INIT_CONTAINERS: components.init_containers(state),
        components.DRA_STANDIN: components.dra_standin(state),
    }


def _write_configuration(state: StateDir, record: Record, pki: Pki) -> None:
    server = f"https://{components.LOOPBACK}:{record.ports.apiserver}"
    write_kubeconfig(pki, "admin", server, state.kubeconfig)
    for name in ("kube-controller-manager", "kube-scheduler", "kwok", *STAND_INS):
        write_kubeconfig(pki, name, server, state.config(f"{name}.kubeconfig"))
    files = {
        "kwok.yaml": components.kwok_config(record.settings.pace, record.settings.init_containers),
        "kube-scheduler.json": json.dumps(components.scheduler_config(state)),
        "audit-policy.json": json.dumps(components.audit_policy()),
    }
    for name, text in files.items():
        write_private(state.config(name), text.encode())
    for part in (*PARTS, *STAND_INS):
        # One start, one log: the tail of a log never speaks of an earlier life. The last one is kept.
        with suppress(FileNotFoundError):
            state.log(part).replace(state.log(f"{part}.previous"))
