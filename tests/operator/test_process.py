"""What surrounds the operator: settings, and works that end together."""

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
def test_where_the_lease_is(monkeypatch, command_line, configured, pod, expected):
    monkeypatch.setattr(process, "_pods_namespace", lambda: pod)
    config = OperatorConfiguration(leader_election=LeaderElection(resource_namespace=configured))
    connection = Config("https://127.0.0.1", StaticCredentials(), namespace="from-context")
    assert OperatorSettings(config, connection, command_line).lease_namespace == expected


def test_the_pods_namespace_is_in_a_file(tmp_path):
    assert process._pods_namespace(tmp_path) == ""
    (tmp_path / "namespace").write_text("grove-system\n")
    assert process._pods_namespace(tmp_path) == "grove-system"


def test_the_election_is_timed_as_configured():
    assert timing_of(LeaderElection()) == LeaseTiming(15, 10, 2)
    assert timing_of(LeaderElection(lease_duration="1m", renew_deadline="2500ms")) == LeaseTiming(60, 2.5, 2)


async def clean_up(done: list[str]) -> None:
    try:
        await asyncio.Event().wait()
    finally:
        await asyncio.sleep(1)
        done.append("cleaned up")


@virtual_time
async def test_when_one_work_ends_the_others_may_clean_up():
    done: list[str] = []
    await run_until_first_ends(asyncio.sleep(1), clean_up(done))
    assert done == ["cleaned up"]


@virtual_time
async def test_what_one_work_raises_is_raised():
    done: list[str] = []

    async def fail() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        await run_until_first_ends(clean_up(done), fail())


@virtual_time
async def test_cancelled_from_outside_all_works_clean_up():
    done: list[str] = []
    task = asyncio.create_task(run_until_first_ends(clean_up(done), clean_up(done)))
    await asyncio.sleep(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert done == ["cleaned up", "cleaned up"]
