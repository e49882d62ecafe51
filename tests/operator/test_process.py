"""What surrounds the operator: settings, and works that end together."""

from __future__ import annotations

import asyncio

import pytest

from grove.api.config import LeaderElection, OperatorConfiguration
from grove.kube.config import Config
from grove.kube.credentials import Presented
from grove.kube.lease import Timing
from grove.kube.testing import virtual_time
from grove.operator import process
from grove.operator.process import Settings, first, timing_of


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
    connection = Config("https://127.0.0.1", Presented(), namespace="from-context")
    assert Settings(config, connection, command_line).lease_namespace == expected


def test_the_pods_namespace_is_in_a_file(tmp_path):
    assert process._pods_namespace(tmp_path) == ""
    (tmp_path / "namespace").write_text("grove-system\n")
    assert process._pods_namespace(tmp_path) == "grove-system"


def test_the_election_is_timed_as_configured():
    assert timing_of(LeaderElection()) == Timing(15, 10, 2)
    assert timing_of(LeaderElection(lease_duration="1m", renew_deadline="2500ms")) == Timing(60, 2.5, 2)


async def clean_up(done: list[str]) -> None:
    try:
        await asyncio.Event().wait()
    finally:
        await asyncio.sleep(1)
        done.append("cleaned up")


@virtual_time
async def test_when_one_work_ends_the_others_may_clean_up():
    done: list[str] = []
    await first(asyncio.sleep(1), clean_up(done))
    assert done == ["cleaned up"]


@virtual_time
async def test_what_one_work_raises_is_raised():
    done: list[str] = []

    async def fail() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        await first(clean_up(done), fail())


@virtual_time
async def test_cancelled_from_outside_all_works_clean_up():
    done: list[str] = []
    task = asyncio.create_task(first(clean_up(done), clean_up(done)))
    await asyncio.sleep(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert done == ["cleaned up", "cleaned up"]
