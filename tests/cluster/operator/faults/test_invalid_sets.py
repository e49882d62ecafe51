"""Sets that break the rules of admission, stored because no webhook refused them: each says so itself."""

from __future__ import annotations

from typing import Any

import structlog.testing

from grove.kube.client.resource import EVENTS
from grove.rules.model import Facts
from grove.rules.podcliqueset.defaults import default_set
from grove.rules.podcliqueset.validation import on_create
from tests.cluster.operator.scenarios.api_errors import last_errors
from tests.cluster.operator.support.harness import World, operating
from tests.cluster.operator.support.objects import SETS
from tests.cluster.operator.support.workloads import clique, workload

Body = dict[str, Any]
IN_ORDER = {"cliqueStartupType": "CliqueStartupTypeExplicit"}


def set_of(name: str, *cliques: Body, **template: Any) -> Body:
    body = workload(name, *cliques)
    body["spec"]["template"] |= template
    return body


def part(name: str, **spec: Any) -> Body:
    body = clique(name, 1)
    body["spec"] |= spec
    return body


def groups(**cliques: list[str]) -> Body:
    return {"podCliqueScalingGroups": [{"name": name, "cliqueNames": of} for name, of in cliques.items()]}


INVALID = (
    set_of("cycle", part("a", startsAfter=["b"]), part("b", startsAfter=["a"]), **IN_ORDER),
    set_of("unknown-parent", part("a", startsAfter=["x"]), **IN_ORDER),
    set_of("unknown-member", part("a"), **groups(g=["a", "x"])),
    set_of("member-of-two", part("a"), **groups(g=["a"], h=["a"])),
    set_of("no-name", part("Not_a_name")),
    set_of("long-name", part("x" * 60)),
    set_of("bounds", part("a", autoScalingConfig={"minReplicas": 5, "maxReplicas": 2})),
)


def refusal(body: Body) -> str:
    """The message with which the webhook refuses the set."""
    return on_create(default_set(body), Facts()).message


async def test_broken_rules_are_reported_on_the_set(world: World) -> None:
    await world.watch(EVENTS)

    def reports(body: Body) -> bool:
        name = body["metadata"]["name"]
        return any(refusal(body) in error for error in last_errors(world, SETS, name))

    def with_event() -> set[str]:
        found = [event for event in world.all(EVENTS) if event.reason == "PodCliqueSetInvalid"]
        return {event.regarding["name"] for event in found}

    with structlog.testing.capture_logs() as logs:
        async with operating(world):
            for body in INVALID:
                assert refusal(body)
                await world.create(SETS, body)
            await world.until(lambda: all(map(reports, INVALID)), "errors in the words of admission")
            await world.until(
                lambda: with_event() == {body["metadata"]["name"] for body in INVALID}, "events"
            )
            repaired = [part("a", startsAfter=["b"]), part("b")]
            await world.patch(SETS, "cycle", {"spec": {"template": {"cliques": repaired}}})
            await world.until(
                lambda: not last_errors(world, SETS, "cycle"), "the repaired set without errors"
            )
    assert not [line for line in logs if "exc_info" in line]
