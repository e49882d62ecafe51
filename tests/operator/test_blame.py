"""Whose error it is, and that one trouble is told once."""

from __future__ import annotations

from grove.api.intents import Create, Target
from grove.kube.outcome import Outcome, Result, State
from grove.operator.blame import blame


def refused(pod: str, why: str) -> Result:
    metadata = {"name": pod, "ownerReferences": [{"name": "w-0-a"}]}
    intent = Create(Target("v1", "Pod", pod, "default"), {"metadata": metadata})
    return Result(intent, State.FAILED, pod, error=RuntimeError(f'pods "{pod}" is forbidden: {why}'))


def test_what_all_pods_of_a_clique_are_refused_for_is_one_error_of_the_clique():
    found = blame(Outcome((refused("w-0-a-bcdfg", "quota"), refused("w-0-a-hjklm", "quota"))), now=0.0)
    (error,) = found.of_cliques["w-0-a"]
    assert error.code == "ERR_CREATE_POD"
    assert 'pods "w-0-a-*" is forbidden: quota' in error.description
    assert not found.of_set


def test_different_reasons_are_different_errors():
    found = blame(Outcome((refused("w-0-a-bcdfg", "quota"), refused("w-0-a-hjklm", "policy"))), now=0.0)
    assert len(found.of_cliques["w-0-a"]) == 2
