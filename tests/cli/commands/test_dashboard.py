"""`grove dashboard`: wrong command lines, ports in use, and the page of a snapshot until it is ended."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import sys
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from grove import timing
from grove.cli import main
from grove.cli.commands import dashboard
from grove.cluster_state.snapshot_file import encode
from grove.dashboard.server.serving import listen
from grove.explanation.reading import SETS
from tests.cli.commands.inspection.snapshots import a_cluster

A_SET = {
    "apiVersion": SETS.api_version,
    "kind": SETS.kind,
    "metadata": {"name": "demo", "namespace": "ns"},
    "spec": {"replicas": 1, "template": {"cliques": []}},
}
GROVE = str(Path(sys.executable).with_name("grove"))


@pytest.fixture
async def snapshot(tmp_path: Path) -> Path:
    path = tmp_path / "cluster.json"
    path.write_bytes(encode(a_cluster(podcliquesets=[A_SET])))
    return path


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ("--port x", "--port x: write a whole number"),
        ("--port 65536", "--port 65536 is not a port: give a number from 0 to 65535"),
        ("--port -1", "--port -1 is not a port: give a number from 0 to 65535"),
        (
            "--bind 0.0.0.0",
            "--bind 0.0.0.0 would show the cluster to everyone who can connect: add --sign-in",
        ),
        ("--bind ::", "--bind :: would show the cluster to everyone who can connect: add --sign-in"),
        ("--bind foo", "--bind foo is not an IP address: give one of this machine, such as 127.0.0.1"),
        ("--bind 127.0.0.300", "--bind 127.0.0.300 is not an IP address: give one of this machine, such as"),
        ("--bind 192.0.2.1 --sign-in", f"cannot listen on 192.0.2.1:{timing.DASHBOARD_PORT} (Cannot assign"),
        ("--bind a.invalid --sign-in --port 1", "--bind a.invalid is not an IP address: give one of this"),
        ("--tls-cert-dir /nowhere", "--tls-cert-dir is used with --sign-in only: add --sign-in"),
        ("--tls-cert-dir /nowhere --sign-in", "/nowhere/tls.crt cannot be read (No such file or directory)"),
        ("--namespaces a,b", "--namespaces is used with --sign-in only: choose one namespace with -n"),
        ("--sign-in --snapshot x", "--sign-in and --snapshot exclude each other: no cluster reviews"),
        ("--port 0 --kubeconfig /nowhere", "kubeconfig /nowhere does not exist: check the path"),
        ("--port 0 --snapshot /nowhere", "/nowhere: cannot be read (No such file or directory): check the"),
    ],
)
def test_wrong_command_line_is_one_line(
    arguments: str, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        main.main(["dashboard", *arguments.split()])
    written = capsys.readouterr()
    assert (end.value.code, written.out) == (1, "")
    assert written.err.startswith(f"grove: {line}")
    assert written.err.count("\n") == 1


def test_unreadable_kubeconfig_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "config"
    path.write_text("[")
    with pytest.raises(SystemExit) as end:
        main.main(["dashboard", "--port", "0", "--kubeconfig", str(path)])
    written = capsys.readouterr()
    assert (end.value.code, written.err.count("\n")) == (1, 1)
    assert written.err.startswith(f"grove: kubeconfig {path} is ")


def test_port_in_use_is_refused_if_it_was_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SystemExit) as end:
            main.main(["dashboard", "--port", str(port)])
    line = f"grove: cannot listen on 127.0.0.1:{port} (Address already in use): give another --port"
    assert end.value.code == 1
    assert capsys.readouterr().err.startswith(line)


def test_usual_port_in_use_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setattr(timing, "DASHBOARD_PORT", port)
        with listen("127.0.0.1", None) as listener:
            assert listener.getsockname()[1] not in (0, port)


@asynccontextmanager
async def running(*arguments: str) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """The process and its address."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(GROVE, "dashboard", *arguments, stdout=pipe, stderr=pipe)
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        async with asyncio.timeout(60):
            line = (await process.stdout.readline()).decode()
            assert line.startswith("The dashboard is at http://127.0.0.1:"), await process.stderr.read()
            yield process, line.split()[4]
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def get(address: str, path: str) -> bytes:
    with urllib.request.urlopen(address + path) as answer:
        return bytes(answer.read())


@pytest.mark.parametrize(
    ("number", "code", "errors"), [(signal.SIGINT, 130, b"grove: interrupted\n"), (signal.SIGTERM, 0, b"")]
)
async def test_snapshot_is_shown_until_a_signal(
    snapshot: Path, number: signal.Signals, code: int, errors: bytes
) -> None:
    async with running("--port", "0", "--snapshot", str(snapshot)) as (process, address):
        picture = json.loads(await asyncio.to_thread(get, address, "api/picture"))
        assert picture["source"]["name"] == "cluster.json"
        assert len(picture["nodes"]) == 4
        stream = await asyncio.to_thread(urllib.request.urlopen, f"{address}api/stream?since=x")
        process.send_signal(number)
        out, err = await process.communicate()
        assert (process.returncode, out, err) == (code, b"", errors)
        stream.close()


@pytest.mark.parametrize(
    ("namespace", "line"),
    [
        ("ns", ""),
        ("other", "the snapshot has nothing in namespace other: check -n"),
    ],
)
async def test_namespace_limits_what_is_shown(snapshot: Path, namespace: str, line: str) -> None:
    async with running("--port", "0", "--snapshot", str(snapshot), "-n", namespace) as (_, address):
        picture = json.loads(await asyncio.to_thread(get, address, "api/picture"))
        assert picture["viewer"] == {"namespaces": [namespace]}
        assert bool(picture.get("sets")) is (not line)
        assert (line in picture.get("unread", ())) is bool(line)


@pytest.mark.parametrize(
    ("display", "terminal", "opens"), [("", True, False), (":0", True, True), (":0", False, False)]
)
def test_browser_is_opened_where_it_is_seen(
    display: str, terminal: bool, opens: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []

    class Now:
        def __init__(self, target: object, args: tuple[str], daemon: bool) -> None:
            assert daemon
            assert target is dashboard._open_browser
            opened.extend(args)

        def start(self) -> None:
            """The thread would run now."""

    monkeypatch.setattr(dashboard, "Thread", Now)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("DISPLAY", display)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setattr("sys.stdout.isatty", lambda: terminal)
    dashboard._announce("http://127.0.0.1:1/", browser=True)
    dashboard._announce("http://127.0.0.1:2/", browser=False)
    assert opened == (["http://127.0.0.1:1/"] if opens else [])
