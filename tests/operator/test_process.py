"""The operator process: its settings, and coroutines that end together."""

from __future__ import annotations

import asyncio

import pytest

from grove.api.configuration.types import LeaderElection, OperatorConfiguration
from grove.kube.auth.config import Config
from grove.kube.auth.credentials import StaticCredentials
from grove.kube.leader.lease import LeaseTiming
from grove.kube.testing.virtual_time import virtual_time
from grove.operator import process
from grove.operator.process import OperatorSettings, run_until_first_ends, timing_of


@pytest.mark.parametrize(
    ("command_line", "configured", "pod", "expected"),
    [
        ("a", "b", "c", "a"),
        ("", "b", "c", "b"),
        ("", "", "c", "c"),
        ("", "", "", "from-context"),
    ],
)
def test_lease_namespace_precedence(monkeypatch, command_line, configured, pod, expected):
    monkeypatch.setattr(process, "_pods_namespace", lambda: pod)
    config = OperatorConfiguration(leader_election=LeaderElection(resource_namespace=configured))
    connection = Config("https://127.0.0.1", StaticCredentials(), namespace="from-context")
    assert OperatorSettings(config, connection, command_line).lease_namespace == expected


def test_pod_namespace_is_read_from_service_account(tmp_path):
    assert process._pods_namespace(tmp_path) == ""
    (tmp_path / "namespace").write_text("grove-system\n")
    assert process._pods_namespace(tmp_path) == "grove-system"


def test_lease_timing_follows_configuration():
    assert timing_of(LeaderElection()) == LeaseTiming(15, 10, 2)
    assert timing_of(LeaderElection(lease_duration="1m", renew_deadline="2500ms")) == LeaseTiming(60, 2.5, 2)


async def clean_up(done: list[str]) -> None:
    try:
        await asyncio.Event().wait()
    finally:
        await asyncio.sleep(1)
        done.append("cleaned up")


@virtual_time
async def test_first_end_cancels_others_with_cleanup():
    done: list[str] = []
    await run_until_first_ends(asyncio.sleep(1), clean_up(done))
    assert done == ["cleaned up"]


@virtual_time
async def test_exception_of_one_coroutine_is_raised():
    done: list[str] = []

    async def fail() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        await run_until_first_ends(clean_up(done), fail())


@virtual_time
async def test_outer_cancellation_cancels_all_with_cleanup():
    done: list[str] = []
    task = asyncio.create_task(run_until_first_ends(clean_up(done), clean_up(done)))
    await asyncio.sleep(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert done == ["cleaned up", "cleaned up"]
