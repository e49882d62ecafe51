"""Starts and stops a local cluster.

`up` may be called for a new, a stopped, a half-started and a running cluster; it starts the components that
do not run. If it fails or is interrupted, it stops the components that it has started.
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
from grove.local.build.binaries import Binaries
from grove.local.build.versions import is_older
from grove.local.cluster import command_lines, ports
from grove.local.cluster.dashboard_process import DASHBOARD, stop_dashboard
from grove.local.cluster.health import Probe, wait_until_healthy
from grove.local.cluster.nodes import ensure_nodes
from grove.local.cluster.operator_process import OPERATOR, stop_operator
from grove.local.cluster.pki import Pki, issue_all, write_kubeconfig
from grove.local.cluster.processes import Process, find_process, spawn, stop, tail
from grove.local.errors import LocalError
from grove.local.private_files import write_private
from grove.local.progress import ProgressReporter
from grove.local.state_dir import ClusterRecord, ClusterSettings, Ports, StateDir

COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")
STANDINS = (command_lines.INIT_CONTAINERS, command_lines.DRA_STANDIN)
_TIMEOUT_SECONDS = {
    "kube-apiserver": 3.0,
    "etcd": 3.0,
}  # seconds between SIGTERM and SIGKILL
_MAX_ATTEMPTS = 3


class PortTaken(LocalError):
    """Another process bound a port after it was chosen and before the component bound it."""


@dataclass(frozen=True, slots=True)
class LocalCluster:
    """A running cluster."""

    state: StateDir
    record: ClusterRecord

    @property
    def kubeconfig(self) -> Path:
        return self.state.kubeconfig

    @property
    def server(self) -> str:
        return f"https://{command_lines.LOOPBACK}:{self.record.ports.apiserver}"


def up(
    state: StateDir, settings: ClusterSettings, find: Callable[[str], Binaries], reporter: ProgressReporter
) -> LocalCluster:
    """Start the components that do not run, and wait until the cluster is ready. `find` returns the programs
    of a minor version."""
    state.prepare()
    with state.lock():
        before = state.read()
        if before:
            _check_settings_unchanged(state, before.settings, settings)
        if before and set(components_of(before.settings)) <= running(state).keys():
            reporter.say(f"already running: {state.root}")
            cluster = LocalCluster(state, before)
            try:
                asyncio.run(ensure_nodes(cluster.kubeconfig, before.settings, reporter))
            except ConnectError as error:
                restart = f"grove down{state.option}, then grove up{state.option}"
                raise LocalError(f"{error}; to restart the cluster: {restart}") from None
            return cluster
        try:
            cluster = _start(state, settings, before, find(settings.kubernetes), reporter)
            asyncio.run(ensure_nodes(cluster.kubeconfig, settings, reporter))
        except BaseException:
            stop_components(state)
            raise
        return cluster


def down(state: StateDir, *, delete: bool = False) -> list[str]:
    """Stop all components and keep the data, unless `delete`. Returns the names of the stopped components."""
    if not state.root.is_dir():
        return []
    if not (state.root / "run").is_dir():
        raise LocalError(f"{state.root} is not the state directory of a cluster: nothing done")
    with state.lock():
        beside = [DASHBOARD] if stop_dashboard(state) else []
        beside += [OPERATOR] if stop_operator(state) else []
        stopped = beside + stop_components(state)
        if delete:
            state.remove()
    return stopped


def components_of(settings: ClusterSettings) -> tuple[str, ...]:
    """The components of a cluster with these settings."""
    chosen = (settings.init_containers, settings.fabric)
    return (*COMPONENTS, *(part for part, wanted in zip(STANDINS, chosen, strict=True) if wanted))


def running(state: StateDir) -> dict[str, Process]:
    """The running components, also those that earlier commands have started."""
    return {name: process for name in (*COMPONENTS, *STANDINS) if (process := find_process(state.pid(name)))}


def stop_components(state: StateDir, names: tuple[str, ...] = (*COMPONENTS, *STANDINS)) -> list[str]:
    """Stop clients first, then the API server, then etcd; continues if one cannot be stopped."""
    stopped: list[str] = []
    failures: list[str] = []
    for name in reversed(names):
        if process := find_process(state.pid(name)):
            try:
                stop(process, _TIMEOUT_SECONDS.get(name, 1.0))
                stopped.append(name)
            except LocalError as error:
                failures.append(f"{name}: {error}")
                continue
        state.pid(name).unlink(missing_ok=True)
    if failures:
        raise LocalError("; ".join(failures))
    return stopped


def _check_settings_unchanged(state: StateDir, stored: ClusterSettings, requested: ClusterSettings) -> None:
    """Reject options that differ from those of the running or stored cluster, and an older Kubernetes:
    it may be unable to decode what a newer one has stored."""
    if is_older(requested.kubernetes, stored.kubernetes):
        raise LocalError(
            f"the cluster in {state.root} has the data of Kubernetes {stored.kubernetes}, which "
            f"{requested.kubernetes} cannot read: run grove down{state.option} --delete first"
        )
    alive = bool(running(state))
    fixed = ("nodes", "gpus", "shape") + (ClusterSettings.__struct_fields__ if alive else ())
    for name in fixed:
        current, wanted = getattr(stored, name), getattr(requested, name)
        if current != wanted:
            option = "--" + name.replace("_", "-")
            delete = "" if alive and name not in fixed[:3] else " --delete"
            raise LocalError(
                f"the cluster in {state.root} has {option} {current}, requested is {wanted}: "
                f"run grove down{state.option}{delete} first"
            )


def _start(
    state: StateDir,
    settings: ClusterSettings,
    before: ClusterRecord | None,
    binaries: Binaries,
    reporter: ProgressReporter,
) -> LocalCluster:
    """Start the components; ports that the user did not choose are chosen again if they are taken, and a new
    port of the API server is reported."""
    stop_components(state)  # a partly running cluster is restarted as a whole
    reporter.say(f"starting {', '.join(components_of(settings))} in {state.root}")
    for attempt in range(_MAX_ATTEMPTS):
        chosen = _ports(settings, before if attempt == 0 else None)
        record = ClusterRecord(settings=settings, ports=chosen, origins=dict(binaries.origins))
        state.write(record)
        try:
            _start_components(state, record, binaries, reporter)
        except PortTaken:
            if settings.port or attempt == _MAX_ATTEMPTS - 1:
                raise
            stop_components(state)
        else:
            break
    _report_changed_port(state, before, record, reporter)
    return LocalCluster(state, record)


def _ports(settings: ClusterSettings, before: ClusterRecord | None) -> Ports:
    """Free ports; the previous ones where possible, so that kubeconfigs stay valid."""
    same = before is not None and before.settings.port == settings.port
    return ports.choose(settings.port, before.ports if before is not None and same else None)


def _report_changed_port(
    state: StateDir, before: ClusterRecord | None, now: ClusterRecord, reporter: ProgressReporter
) -> None:
    if before is not None and before.ports.apiserver != now.ports.apiserver:
        reporter.say(
            f"the API server's port has changed from {before.ports.apiserver} to {now.ports.apiserver}: "
            f"{state.kubeconfig} has the new one, copies of it do not"
        )


def _start_components(
    state: StateDir, record: ClusterRecord, binaries: Binaries, reporter: ProgressReporter
) -> None:
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
    for name in components_of(record.settings):
        started[name] = spawn(lines[name], state.log(name), state.pid(name))
        for probe in waits.get(name, ()):
            wait_until_healthy(probe, ca, lambda: _raise_if_exited(state, started))
    reporter.say(f"control plane ready at https://{command_lines.LOOPBACK}:{listening.apiserver}")


def _raise_if_exited(state: StateDir, started: dict[str, Process]) -> None:
    for name, process in started.items():
        if not process.alive:
            last = tail(state.log(name))
            kind = PortTaken if "address already in use" in last else LocalError
            raise kind(f"{name} exited while starting; last lines of {state.log(name)}:\n{last}")


def _command_lines(
    state: StateDir, record: ClusterRecord, binaries: Binaries, pki: Pki
) -> dict[str, list[str]]:
    settings, chosen = record.settings, record.ports
    return {
        "etcd": command_lines.etcd(binaries["etcd"], state, chosen, pki),
        "kube-apiserver": command_lines.apiserver(binaries["kube-apiserver"], state, settings, chosen, pki),
        "kube-controller-manager": command_lines.controller_manager(
            binaries["kube-controller-manager"], state, settings, chosen, pki
        ),
        "kube-scheduler": command_lines.scheduler(binaries["kube-scheduler"], state, settings, chosen, pki),
        "kwok": command_lines.kwok(binaries["kwok"], state, chosen),
        command_lines.INIT_CONTAINERS: command_lines.init_containers(state),
        command_lines.DRA_STANDIN: command_lines.dra_standin(state),
    }


def _write_configuration(state: StateDir, record: ClusterRecord, pki: Pki) -> None:
    server = f"https://{command_lines.LOOPBACK}:{record.ports.apiserver}"
    write_kubeconfig(pki, "admin", server, state.kubeconfig)
    for name in ("kube-controller-manager", "kube-scheduler", "kwok", *STANDINS):
        write_kubeconfig(pki, name, server, state.config(f"{name}.kubeconfig"))
    files = {
        "kwok.yaml": command_lines.kwok_config(record.settings.pace, record.settings.init_containers),
        "kube-scheduler.json": json.dumps(command_lines.scheduler_config(state)),
        "audit-policy.json": json.dumps(command_lines.audit_policy()),
    }
    for name, text in files.items():
        write_private(state.config(name), text.encode())
    for part in (*COMPONENTS, *STANDINS):
        # One log per start, so that its last lines are of this start. The previous log is kept.
        with suppress(FileNotFoundError):
            state.log(part).replace(state.log(f"{part}.previous"))
