"""Plans that are executed in part: every prefix is executable, and failed intents do not delay the others."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from grove.api.intents import Delete, Target
from grove.kube.executor.dependency_graph import DependencyGraph
from grove.plan.writes.collector import bounded


def intents(edges: list[list[int]]) -> list[Delete]:
    """One intent for each list, after the earlier ones that it names."""
    created: list[Delete] = []
    for number, after in enumerate(edges):
        ids = {created[index % number].id for index in after} if number else set()
        created.append(Delete(Target("v1", "Pod", f"p-{number}", "ns"), uid="u", after=tuple(sorted(ids))))
    return created


GRAPHS = st.lists(st.lists(st.integers(0, 30), max_size=3), max_size=20).map(intents)


@given(GRAPHS, st.integers(0, 25), st.sets(st.integers(0, 19)))
def test_prefix_of_plan_has_no_outside_dependencies(plan, most, failed):
    chosen = bounded(plan, most, {f"{plan[index].id}" for index in failed if index < len(plan)})
    assert len(chosen) == min(most, len(plan))
    DependencyGraph(chosen)  # raises if an intent depends on one that is not before it


def test_failed_intents_and_dependents_come_last():
    plan = intents([[], [0], [1], [], []])
    chosen = bounded(plan, 3, {plan[0].id})
    assert [intent.target.name for intent in chosen] == ["p-3", "p-4", "p-0"]
