"""The command of a peer: its words, its program, and the process that it becomes."""

from __future__ import annotations

import asyncio
import os
import select
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from bench.peer import measure, process
from bench.peer.command import Command, parse
from bench.peer.errors import PeerError


def test_kubeconfig_is_substituted_and_other_braces_stay():
    command = parse(f"{sys.executable} --kubeconfig={{kubeconfig}} 'two words' {{}}")
    expected = [sys.executable, "--kubeconfig=/a/b", "two words", "{}"]
    assert command.arguments(Path("/a/b")) == expected


def test_name_has_no_folder():
    assert Command(("/opt/bin/operator", "--flag")).name == "operator"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "PEER is empty"),
        ("sh 'open", "PEER cannot be split into words .No closing quotation.: close every quote"),
        ("no-such-program --flag", "PEER starts with no-such-program, which is no program"),
    ],
)
def test_unusable_command_is_refused(text, message):
    with pytest.raises(PeerError, match=message):
        parse(text)


def test_command_without_a_directory_is_refused():
    with pytest.raises(PeerError, match="PEER needs PEER_DIR"):
        measure.read("sh", "")


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    """The files of a cluster, without one."""
    monkeypatch.setattr(process, "credentials", lambda _cluster, _user: tmp_path / "kubeconfig")
    return SimpleNamespace(state=SimpleNamespace(log=lambda name: tmp_path / f"{name}.log"))


async def test_exit_cancels_the_measurement_and_shows_the_log(cluster):
    with pytest.raises(PeerError, match=r"the peer sh exited with code 3: (?s:.*)no configuration"):
        async with process.running(Command(("sh", "-c", "echo no configuration; exit 3")), cluster):
            await asyncio.sleep(60)


async def test_error_of_the_measurement_is_raised_as_it_is(cluster):
    with pytest.raises(TimeoutError, match="slow"):
        async with process.running(Command(("sleep", "60")), cluster):
            raise TimeoutError("slow")


async def test_stop_ends_children_too(cluster, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    script = f'sleep 60 & echo "$KUBECONFIG $!" > {pipe}; wait'
    async with process.running(Command(("sh", "-c", script)), cluster):
        kubeconfig, child = (await asyncio.to_thread(pipe.read_text)).split()
        exited = os.pidfd_open(int(child))
    try:
        assert select.select([exited], [], [], 10)[0]
    finally:
        os.close(exited)
    assert kubeconfig == str(tmp_path / "kubeconfig")
