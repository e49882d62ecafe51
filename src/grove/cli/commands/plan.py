"""`grove plan`: what would happen if an object were applied, and whether it would fit."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter
from msgspec import Struct

from grove.api.configuration import loading
from grove.api.configuration.loading import ConfigurationError
from grove.api.naming.well_known import OPERATOR_LEASE
from grove.api.types.podcliqueset import PodCliqueSet
from grove.cli import options
from grove.cli.commands import common
from grove.cli.console import open_console, output_width
from grove.cli.exit_codes import ExitCode
from grove.cli.structured_output import is_structured, object_name, write_names, write_structured
from grove.cli.views.plan_view import plan_rows
from grove.cli.views.text_layout import lines
from grove.cluster_state.described import described_state
from grove.cluster_state.kinds import kinds_of
from grove.cluster_state.model import ClusterState
from grove.cluster_state.operator_setup import OperatorSetup, new_caches, operator_setup
from grove.cluster_state.reading import read_state
from grove.cluster_state.snapshot_file import read_file
from grove.dry_run.admission import admit_by_server
from grove.dry_run.documents import Document, InputError, read_documents
from grove.dry_run.model import PlanReport, Verdict
from grove.dry_run.planning import Planner, ServerAdmission
from grove.dry_run.topologies import unknown_topologies
from grove.explanation.suggestions import unknown_name
from grove.kube.auth import config
from grove.kube.client.client import Client
from grove.kube.errors import KubeError
from grove.operator.caches.resources import resource_of

EXIT_CODES = {
    Verdict.FITS: ExitCode.OK,
    Verdict.REJECTED: ExitCode.FAILED,
    Verdict.DOES_NOT_FIT: ExitCode.PROBLEM,
    Verdict.UNKNOWN: ExitCode.UNKNOWN,
}


class UnreadError(KubeError):
    """What is to be planned could not be read."""


class _Request(Struct, frozen=True):
    """The command line."""

    name: str | None
    file: str | None
    replicas: int | None
    largest: bool
    snapshot: Path | None
    shape: str | None
    gpus: int | None
    namespace: str | None
    kubeconfig: Path | None
    context: str | None


def plan(
    name: str | None = None,
    *,
    file: Annotated[
        str | None,
        Parameter(
            alias="-f", allow_leading_hyphen=True, help="File of the objects, YAML or JSON; - for stdin."
        ),
    ] = None,
    replicas: Annotated[int | None, Parameter(help="Plan the named set with this many replicas.")] = None,
    max_: Annotated[
        bool, Parameter(name="--max", negative=(), help="Also say how many replicas fit now.")
    ] = False,
    snapshot: Annotated[
        Path | None, Parameter(help="Plan on a snapshot of a cluster, written by grove snapshot.")
    ] = None,
    shape: Annotated[
        str | None, Parameter(help="Plan on empty nodes: zones x blocks x racks x hosts, such as 2x2x4x8.")
    ] = None,
    gpus: Annotated[int | None, Parameter(help="GPUs of each node of the shape; default: 8.")] = None,
    config_: Annotated[
        Path | None, Parameter(name="--config", help="Configuration of the operator; default: all enabled.")
    ] = None,
    namespace: options.NamespaceOption = None,
    output: options.OutputOption = "table",
    kubeconfig: options.KubeconfigOption = None,
    context: options.ContextOption = None,
) -> int:
    """Show what would happen if objects were applied, and whether they fit. Nothing is written.

    Exit codes: 0 everything fits; 1 wrong input, or admission rejects it; 2 something does not fit; 3 it
    cannot be known, because a right is missing or the search was stopped at its limit.

    Parameters
    ----------
    name
        Name of a PodCliqueSet of the cluster, instead of a file.
    """
    request = _Request(name, file, replicas, max_, snapshot, shape, gpus, namespace, kubeconfig, context)
    _check(request)
    try:
        report = asyncio.run(_report(request, _setup(config_)))
    except UnreadError as error:
        sys.stderr.write(f"grove: {error}\n")
        return ExitCode.UNKNOWN
    _show(report, output)
    return EXIT_CODES[report.verdict]


def _check(request: _Request) -> None:
    if request.name is not None and request.file is not None:
        raise InputError(f"{request.name} and -f {request.file} exclude each other: give a name or a file")
    if request.name is None and request.file is None:
        raise InputError("nothing to plan: give the name of a PodCliqueSet, or -f FILE")
    if request.snapshot is not None and request.shape is not None:
        raise InputError("--snapshot and --shape exclude each other: use one of them")
    if request.shape is not None and request.name is not None:
        raise InputError(f"{request.name}: nothing exists on a described shape: give a file with -f")
    if request.gpus is not None and request.shape is None:
        raise InputError("--gpus is for the nodes of a shape: add --shape, such as --shape 2x2x4x8")
    if request.gpus is not None and request.gpus < 0:
        raise InputError(f"--gpus {request.gpus}: must not be negative")
    if request.replicas is not None and request.name is None:
        raise InputError("--replicas is for a PodCliqueSet of the cluster: give its name instead of -f")
    if request.replicas is not None and request.replicas < 0:
        raise InputError(f"--replicas {request.replicas}: must not be negative")


def _setup(path: Path | None) -> OperatorSetup:
    if path is None:
        return operator_setup()
    from grove.cli.commands.operator import read as read_configuration  # imports all of the operator

    try:
        configuration, problems = loading.check(read_configuration(path))
        setup = operator_setup(configuration) if not problems else None
    except ConfigurationError as error:
        setup, problems = None, error.problems
    if setup is None:
        raise InputError(f"{path}: {'; '.join(problems)}")
    return setup


async def _report(request: _Request, setup: OperatorSetup) -> PlanReport:
    text = _read(request.file) if request.file is not None else ""
    async with _cluster(request, setup, text) as (state, namespace, ask_server):
        now = state.taken_at or time.time()
        documents = (
            read_documents(text, request.file, namespace)
            if request.file is not None
            else [_named(state, request, namespace)]
        )
        planner = Planner(state, setup, now, ask_server, redacted=request.snapshot is not None)
        return await planner.plan(documents, largest=request.largest)


@asynccontextmanager
async def _cluster(
    request: _Request, setup: OperatorSetup, text: str
) -> AsyncIterator[tuple[ClusterState, str, ServerAdmission | None]]:
    """The state to plan on, the default namespace, and the server that admission asks, if there is one."""
    kinds = kinds_of(new_caches(setup), OPERATOR_LEASE)
    namespace = request.namespace or "default"
    if request.snapshot is not None:
        yield read_file(request.snapshot), namespace, None
        return
    if request.shape is not None:
        documents = read_documents(text, request.file or "", namespace)
        gpus = 8 if request.gpus is None else request.gpus
        topologies = unknown_topologies(documents) or ("local",)
        yield described_state(request.shape, gpus, kinds, topologies), namespace, None
        return
    connection = config.load(request.kubeconfig, request.context)
    namespace = request.namespace or connection.namespace
    async with Client(connection) as client:
        state = await read_state(client, kinds, namespace, source=connection.server)
        yield state, namespace, partial(admit_by_server, client)


def _read(file: str) -> str:
    if file == "-" and sys.stdin is None:
        raise InputError("-f -: standard input is closed: write the objects to it, or give a file")
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        return data.decode()
    except OSError as problem:
        raise InputError(f"{file}: cannot be read ({problem.strerror}): check the path") from None
    except UnicodeDecodeError:
        raise InputError(f"{file}: not text: write objects as YAML or JSON") from None


def _named(state: ClusterState, request: _Request, namespace: str) -> Document:
    """The set of the cluster that is named, with the requested replicas. Raises InputError or UnreadError."""
    sets = state.kind(resource_of(PodCliqueSet.KIND))
    if not sets.listed:
        why = sets.problem or "the cluster does not serve them: install the CRDs with grove crds --apply"
        raise UnreadError(f"PodCliqueSet {request.name} in namespace {namespace} cannot be read: {why}")
    if sets.namespace not in ("", namespace):
        why = f"only those of namespace {sets.namespace} are known"
        raise UnreadError(f"PodCliqueSet {request.name} in namespace {namespace} cannot be read: {why}")
    found = [
        (each["metadata"].get("namespace", ""), each["metadata"]["name"], each)
        for each in state.objects(resource_of(PodCliqueSet.KIND), dict)
    ]
    body = next((each for place, name, each in found if (place, name) == (namespace, request.name)), None)
    if f"{namespace}/{request.name}" in sets.undecodable or (body is not None and not _is_set(body)):
        why = "correct its spec, or give a file with -f"
        raise UnreadError(f"PodCliqueSet {request.name} in namespace {namespace} cannot be decoded: {why}")
    if body is None:
        known = [(place, name) for place, name, _ in found]
        raise InputError(unknown_name(PodCliqueSet.KIND.name, request.name or "", namespace, known))
    if request.replicas is not None:
        body = {**body, "spec": {**body["spec"], "replicas": request.replicas}}
    kept = ("name", "namespace", "labels", "annotations")
    metadata = {key: value for key, value in body["metadata"].items() if key in kept}
    return Document(PodCliqueSet.KIND, {"metadata": metadata, "spec": body["spec"], **_TYPE})


def _is_set(body: dict[str, Any]) -> bool:
    """Whether an object fits the type of sets, as the operator reads them."""
    try:
        msgspec.json.decode(msgspec.json.encode(body), type=PodCliqueSet)
    except msgspec.MsgspecError:
        return False
    return True


_TYPE = {"apiVersion": PodCliqueSet.KIND.api_version, "kind": PodCliqueSet.KIND.name}


def _show(report: PlanReport, output: options.Output) -> None:
    if is_structured(output):
        write_structured(report, output)
        return
    if output == "name":
        write_names(object_name(each.kind, each.name) for each in report.plans)
        return
    console = open_console()
    for row in plan_rows(report):
        common.show(lines(row, output_width(console, output)), console)
