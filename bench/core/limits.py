"""The limits of the operator: what it may need, most of them as a ratio to a floor of the same run."""

from __future__ import annotations

from typing import Any, NamedTuple

from bench.budget import Budget

NODES = 100
SAME_MOMENT = 1.0
"""Seconds from the last pod to the last clique or gang."""
Result = dict[str, Any]


class Limit(NamedTuple):
    """A limit, with the floor that it is measured against; None: it has none, and is a number by itself."""

    what: str
    ours: float
    floor: float | None
    at_most: float

    @property
    def measured(self) -> float:
        """The ratio to the floor, or the number."""
        return self.ours if self.floor is None else self.ours / self.floor

    @property
    def budget(self) -> Budget:
        return Budget(self.what, self.measured, self.at_most)


def limits(result: Result) -> list[Limit]:
    """The limits of what was measured."""
    found: list[Limit] = []
    if {"ours", "floor"} <= result.keys():
        found += _of_start_and_deletion(result["ours"], result["floor"])
    if "ours" in result:
        found += _of_ours(result["ours"])
    if "updated" in result:
        found.append(_calls_per_pod("calls for each pod of a rolling update", result["updated"], 8.0))
    return found + _further(result)


def _of_start_and_deletion(ours: Result, floor: Result) -> list[Limit]:
    return [
        Limit("pods ready / contract floor", ours["ready"], floor["ready"], 1.10),
        Limit("operator CPU / contract floor's client", ours["cpu"], floor["cpu"], 1.3),
        Limit("half scaled in / bare delete", ours["deleted_half"], floor["deleted_half"], 1.5),
        Limit("all deleted / bare delete", ours["deleted"], floor["deleted"], 1.5),
    ]


def _of_ours(ours: Result) -> list[Limit]:
    later = ours["deleted"] - ours["pods_deleted"]
    return [
        Limit("cliques and gangs gone after the pods, s", later, None, SAME_MOMENT),
        Limit("memory, MiB", ours["rss_mib"], None, 75),
        Limit("calls after an annotation is touched", ours["annotation_calls"], None, 0),
        Limit("calls per minute at rest", ours["idle_calls"], None, 0),
        _calls_per_pod("calls per pod", ours, 4.0),
    ]


def _calls_per_pod(what: str, measured: Result, at_most: float) -> Limit:
    return Limit(what, measured["calls"] / measured["pods"], None, at_most)


def _further(result: Result) -> list[Limit]:
    found: list[Limit] = []
    if recycled := result.get("recycled"):
        found.append(_calls_per_pod("calls for each restarted pod", recycled, 8.0))
    if grouped := result.get("grouped"):
        contract = grouped["contract_calls"]
        found.append(Limit("with groups: calls / contract's", grouped["calls"], contract, 4.0 / 3.5))
    if small := result.get("small"):
        later = small["ready"] - small["floor_ready"]
        found.append(Limit("10 pods, apply to ready, s over the floor", later, None, 1.0))
    if large := result.get("large"):
        found += [
            Limit("5000 pods: memory, MiB", large["rss_mib"], None, memory(large["pods"], NODES)),
            Limit("5000 pods: writes of a restart", large["restart_writes"], None, 0),
            Limit("5000 cliques deleted, s", large["deleted"], None, 120),
        ]
    if contended := result.get("contended"):
        found.append(_calls_per_pod("contended: calls per pod", contended, 6.0))
    if crowded := result.get("crowded"):
        allowed = memory(crowded["pods"], crowded["nodes"], crowded["foreign"])
        found.append(Limit("5000 pods of others: memory, MiB", crowded["rss_mib"], None, allowed))
    return found


def memory(pods: int, nodes: int, foreign: int = 0) -> float:
    """MiB for pods of sets, nodes, and pods of others."""
    return 75 + (pods * 10 + nodes * 2 + foreign * 0.3) / 1024
