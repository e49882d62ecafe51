"""Commands about one object: wrong input, and clusters that do not have it."""

from __future__ import annotations

import pytest
from aiohttp import web

from grove.cli.commands.inspection.one_object import find_object, read_object
from grove.explanation.reading import SubtreeReader
from grove.kube.client.client import Client
from grove.kube.client.retry import NO_RETRY
from grove.kube.errors import ConfigError, ConnectError, KubeError
from tests.kube.scripted_server import failure, reply, serve

LISTED = {"metadata": {"resourceVersion": "1"}}
INSTALL = "install the CRDs with grove crds | kubectl apply --server-side -f -"


async def unserved(_: web.Request) -> web.Response:
    return web.Response(status=404, text="404 page not found\n")


@pytest.mark.parametrize(
    ("written", "kinds", "expected"),
    [
        ("demo", 6, f"the cluster does not serve PodCliqueSets: {INSTALL}"),
        ("dgd/demo", 1, f"the cluster does not serve DynamoGraphDeployments: {INSTALL}"),
    ],
)
async def test_missing_crds_are_named(written, kinds, expected):
    async with serve() as server, Client(server.config(), retry=NO_RETRY) as client:
        for read in (read_object, find_object):
            server.script += [unserved] * kinds
            with pytest.raises(ConfigError) as error:
                await read(client, SubtreeReader(client, "team"), written)
            assert str(error.value) == expected


async def only_sets(request: web.Request) -> web.StreamResponse:
    """A cluster with a set demo, for a user without rights on graphs and pods."""
    path = request.path
    if "dynamographdeployments" in path or "/pods" in path:
        return await failure(403, "Forbidden", "no right")(request)
    if path.endswith("/podcliquesets"):
        return await reply(LISTED | {"items": [{"metadata": {"name": "demo", "namespace": "team"}}]})(request)
    if path.endswith("/dmo"):
        return await failure(404, "NotFound", "not found", {"name": "dmo"})(request)
    return await reply(LISTED | {"items": []})(request)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("dmo", "no workload dmo in namespace team: did you mean demo?"),
        ("pod/dmo", "get pods team/dmo: no right (403 Forbidden)"),
    ],
)
async def test_right_on_other_kinds_is_not_needed(written, expected):
    async with serve() as server, Client(server.config(), retry=NO_RETRY) as client:
        server.script += [only_sets] * 20
        with pytest.raises(KubeError) as error:
            await read_object(client, SubtreeReader(client, "team"), written)
        assert str(error.value) == expected


async def test_server_that_is_not_there_is_one_error():
    async with serve() as server:
        config = server.config()
    async with Client(config, retry=NO_RETRY) as client:
        with pytest.raises(ConnectError):
            await read_object(client, SubtreeReader(client, "team"), "demo")


@pytest.mark.parametrize("command", ["status", "events", "logs"])
def test_missing_kubeconfig_is_one_line(run_command, command):
    code, out, err = run_command(command, "demo", "--kubeconfig", "nowhere")
    assert (code, out, err) == (1, "", "grove: kubeconfig nowhere does not exist: check the path\n")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["-c", "a", "--all-containers"],
         "--container and --all-containers exclude each other: use one of them"),
        (["-f", "-p"], "--follow and --previous exclude each other: a run that has ended does not go on"),
        (["--max-log-requests", "0"], "--max-log-requests 0: write 1 or more"),
        (["--since", "5 minutes"], '--since: "5 minutes" is not a duration such as "4h0m0s" or "90s"'),
        (["--since=-5s"], "--since -5s: write a duration above zero"),
        (["--tail", "ten"], "--tail ten: write a whole number"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else "",
)  # fmt: skip
def test_wrong_option_of_logs_is_one_line(run_command, arguments, line):
    code, out, err = run_command("logs", "demo", *arguments, "--kubeconfig", "nowhere")
    assert (code, out) == (1, "")
    assert err == f"grove: {line}\n"
