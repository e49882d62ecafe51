"""Each seeded cause is the code of the condition `Waiting`, of its gang and of its set, and the first that
`grove explain` names, first of all."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import structlog

from grove import timing
from grove.api.configuration.types import Scheduler, SchedulerProfile
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import CUSTOM_RESOURCE_DEFINITIONS as CRDS
from grove.schedulers.registry import backends
from tests.chart import Account
from tests.cluster.operator.scheduling.test_placement import TOPOLOGIES
from tests.cluster.operator.support.harness import operating
from tests.cluster.operator.support.objects import CLIQUES, GANGS, SETS
from tests.cluster.operator.support.world import World
from tests.cluster.reasons.causes import CAUSES, MISSING_TOPOLOGY, NAME, RACK, TOPOLOGY, Cause
from tests.cluster.reasons.explained import differing, explained, explained_early, wrongly_explained
from tests.cluster.reasons.seeded import Seeded, webhook_that_is_down

SCHEDULERS = backends(
    Scheduler(
        (
            SchedulerProfile("default-scheduler", {"placement": "All", "visibleAfter": "Never"}),
            SchedulerProfile("kai-scheduler"),
            SchedulerProfile("volcano"),
        )
    )
)
log = structlog.get_logger(__name__)
HOST = "kubernetes.io/hostname"


@asynccontextmanager
async def topologies(client: Client) -> AsyncIterator[None]:
    found = {
        TOPOLOGY: (RACK, HOST),
        MISSING_TOPOLOGY: ("example.com/no-such-rack", "example.com/no-such-host"),
    }
    for name, (rack, host) in found.items():
        levels = [{"domain": "rack", "key": rack}, {"domain": "host", "key": host}]
        named = {"apiVersion": TOPOLOGIES.api_version, "kind": TOPOLOGIES.kind, "metadata": {"name": name}}
        body = {**named, "spec": {"levels": levels}}
        await client.create(TOPOLOGIES, body, as_type=Object)
    try:
        yield
    finally:
        for name in found:
            await client.delete(TOPOLOGIES, name, as_type=Object)


@pytest.fixture
def no_slow_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine writes take seconds, and sets would say so instead of what was seeded."""
    monkeypatch.setattr(timing, "REPORTED_WRITE", 600.0)


@pytest.fixture
def account(placing_account: Account) -> Account:
    return placing_account


@pytest.mark.usefixtures("no_slow_writes")
async def test_each_cause_is_the_first_code_of_gang_and_set(client: Client, account: Account) -> None:
    causes = await possible_causes(client)
    seeded = Seeded(client, causes, "others-of-causes")
    world = World(client, account.config, seeded.others)
    async with (
        seeded.watched(),
        webhook_that_is_down(client),
        topologies(client),
        operating(world, backends=SCHEDULERS, topology_aware=True),
    ):
        try:
            await seeded.create()
            await seeded.until(lambda: not wrong(seeded) and not incomplete(seeded))
            assert not wrong(seeded), "\n".join(wrong(seeded))
            assert incomplete(seeded) == []
            slowest = max(seeded.delays, key=lambda name: seeded.delays[name])
            log.info("reasons written", longest=round(seeded.delays[slowest], 2), cause=slowest)
            whole = await explained(client, causes)
            assert wrongly_explained(causes, whole) == {}
            early = await explained_early(client, causes)
            assert differing(early, whole) == []
            assert sum(each.has_reasons for each in early.values()) > len(causes) / 2
            without_conditions = await explained(client, causes, written=False)
            assert wrongly_explained(causes, without_conditions) == {}
        finally:
            await seeded.delete()


async def possible_causes(client: Client) -> tuple[Cause, ...]:
    """Without what other tests of this cluster have changed: they may have installed the CRDs of Volcano."""
    crds = {each.metadata.name for each in (await client.list(CRDS, as_type=Object)).items}
    installed = {"volcano-not-installed"} if "podgroups.scheduling.volcano.sh" in crds else set()
    return tuple(each for each in CAUSES if each.name not in installed)


def wrong(seeded: Seeded) -> list[str]:
    """For each cause with another code: what was expected of gang and set, and what they say."""
    found = []
    for cause in seeded.causes:
        expected = (cause.expected_of_gang if cause.gang else "", cause.code)
        if cause.passing and {(NAME, cause.code), *_of_gang(cause)} <= seeded.seen[cause.name]:
            continue
        of_gang = seeded.condition(GANGS, cause, cause.gang) if cause.gang else {}
        of_set = seeded.condition(SETS, cause, NAME)
        if (of_gang.get("reason", ""), of_set.get("reason", "")) != expected:
            says = (f"{each.get('reason')} {each.get('message')}" for each in (of_gang, of_set))
            found.append(f"{cause.name}: {' / '.join(expected)} expected, {' / '.join(says)}")
    return found


def _of_gang(cause: Cause) -> list[tuple[str, str]]:
    return [(cause.gang, cause.expected_of_gang)] if cause.gang else []


def incomplete(seeded: Seeded) -> list[str]:
    """The causes that some object does not report, or reports with a word too many."""
    return [each.name for each in seeded.causes if not is_complete(seeded, each)]


def is_complete(seeded: Seeded, cause: Cause) -> bool:
    """Whether a clique has the code, too, and no message names the namespace of others."""
    if cause.passing:
        return True
    conditions = [seeded.condition(SETS, cause, NAME)]
    if cause.gang is not None:
        conditions.append(seeded.condition(GANGS, cause, cause.gang))
        cliques = (f"{NAME}-0-{each['name']}" for each in cause.body["spec"]["template"]["cliques"])
        grouped = (f"{NAME}-0-g-1-a",) if cause.of_gang else cliques
        codes = {seeded.code(CLIQUES, cause, name) for name in grouped}
        if cause.expected_of_gang not in codes:
            return False
    return all(each["status"] == "True" and seeded.others not in each["message"] for each in conditions)
