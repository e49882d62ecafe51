"""What is news: what goes as a whole is told once, and the end of a set tells itself."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from grove.api.intents import Delete, Target
from grove.kube.outcome import Outcome, Result, State
from grove.operator.caches import Caches
from grove.operator.tell import occurrences
from tests.plan.builders import a_set, read_set

SET = read_set(a_set("a:1"))
ENDING = replace(SET, metadata=replace(SET.metadata, deletion_timestamp="2026-01-01T00:00:00Z"))
POD = Target("v1", "Pod", "wl-1-a-xyz", "ns")
CLIQUE = Target("grove.io/v1alpha1", "PodClique", "wl-1-a", "ns")
GANG = Target("scheduler.grove.io/v1alpha1", "PodGang", "wl-1", "ns")
OTHER = Target("scheduler.grove.io/v1alpha1", "PodGang", "wl-11", "ns")


@pytest.mark.parametrize(
    ("workload", "deleted", "told"),
    [
        (SET, [POD], 1),
        (SET, [POD, CLIQUE], 2),
        (SET, [POD, CLIQUE, GANG], 1),
        (SET, [POD, OTHER], 2),
        (ENDING, [POD, CLIQUE, GANG], 0),
    ],
    ids=["a pod", "a clique", "a whole replica", "another replica", "a set"],
)
def test_what_went_along_is_no_news(workload, deleted: list[Target], told: int) -> None:
    outcome = Outcome(tuple(Result(Delete(target, uid="u"), State.DONE) for target in deleted))
    assert len(list(occurrences(Caches(), workload, outcome))) == told


def test_what_could_not_be_deleted_is_told_in_any_case() -> None:
    failed = Result(Delete(POD, uid="u"), State.FAILED, error=ValueError("no"))
    assert len(list(occurrences(Caches(), ENDING, Outcome((failed,))))) == 1
