"""Which units of a clique or group an update replaces next."""

from __future__ import annotations

import pytest

from grove.plan.rollout.units import UpdateUnit, select_units

# One letter per unit, its name is its position. Capitals are ready. O and o are outdated, N and n are new.
#   x outdated, not ready, and not all of it seen     l new and ready, a pod of it terminating
#   f outdated, no node has room                      u new, no node has room     t the same, replaced by us
WORDS = {
    "O": UpdateUnit(0, outdated=True, ready=True),
    "o": UpdateUnit(0, outdated=True),
    "x": UpdateUnit(0, outdated=True, complete=False),
    "f": UpdateUnit(0, outdated=True, unschedulable=True),
    "N": UpdateUnit(0, ready=True),
    "n": UpdateUnit(0),
    "r": UpdateUnit(0, replaced_by_update=True),
    "l": UpdateUnit(0, ready=True, terminating_until=9.0),
    "u": UpdateUnit(0, unschedulable=True),
    "t": UpdateUnit(0, unschedulable=True, replaced_by_update=True),
}


def units(words: str) -> list[UpdateUnit[int]]:
    found = []
    for place, word in enumerate(words):
        like = WORDS[word]
        found.append(
            UpdateUnit(
                place,
                like.outdated,
                like.ready,
                like.complete,
                like.terminating_until,
                like.replaced_by_update,
                like.unschedulable,
            )
        )
    return found


@pytest.mark.parametrize(
    ("words", "minimum", "budget", "unready", "chosen", "over"),
    [
        ("OOO", 3, 1, "", "0", False),
        ("NOO", 3, 1, "", "1", False),
        ("nOO", 1, 1, "", "", False),
        ("nOO", 2, 2, "", "1", False),
        ("rOO", 2, 2, "", "1", False),
        ("OOO", 3, 2, "", "01", False),
        ("oOo", 1, 1, "02", "", False),
        ("ooo", 3, 1, "012", "", False),
        ("xOO", 1, 1, "", "", False),
        ("lOO", 1, 1, "", "", False),
        ("uOO", 1, 1, "", "1", False),
        ("fOO", 1, 1, "0", "1", False),
        ("tOO", 1, 1, "", "", False),
        ("uOO", 3, 1, "", "", False),
        ("nnO", 2, 3, "", "", False),
        ("NNN", 3, 1, "", "", True),
        ("NNr", 3, 1, "", "", False),
        ("NNt", 3, 1, "", "", False),
        ("NNn", 3, 1, "", "", True),
        ("NNu", 3, 1, "", "", True),
        ("", 1, 1, "", "", True),
    ],
)
def test_select_units(words, minimum, budget, unready, chosen, over):
    verdict = select_units(units(words), minimum, budget)
    assert "".join(str(unit.name) for unit in verdict.unready) == unready
    assert "".join(str(unit.name) for unit in verdict.chosen) == chosen
    assert verdict.over is over
