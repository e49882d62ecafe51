"""Judges from the writes of pods, in their order and with the times of the API server, whether gangs were
ever bound in part, and for how long.

Pods are bound one after another, so that each gang is incomplete for some milliseconds. Two things are wrong:
a gang that stays incomplete, and a gang with a bound pod for whose other pods the scheduler finds no node and
preempts none.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from grove.api.naming import labels
from tests.cluster.operator.placement.audit import PodWrite


class PodRecord(Struct):
    """What the writes say about a pod."""

    gang: str = ""
    node: str = ""
    nominated: str = ""
    unschedulable: bool = False

    def apply(self, write: PodWrite) -> None:
        """Take over a write."""
        status = write.body.get("status") or {}
        if write.what == "binding":
            self.node = write.body["target"]["name"]
        if "nominatedNodeName" in status:
            self.nominated = status["nominatedNodeName"] or ""
        for condition in status.get("conditions") or ():
            if condition.get("type") == "PodScheduled" and "reason" in condition:  # a patch has the changes
                self.unschedulable = condition["reason"] == "Unschedulable"

    @property
    def stuck(self) -> bool:
        """Whether the scheduler has found no node for it, and preempts no pod."""
        return self.unschedulable and not self.node and not self.nominated


class GangRecord(Struct):
    """One gang, from its first pod on until it is whole: later losses are not those of its start."""

    pods: dict[str, PodRecord] = {}
    whole: bool = False
    incomplete_since: float | None = None
    incomplete: float = 0.0
    """The longest time for which some of its pods were bound, in seconds."""
    half_bound: bool = False
    """Whether it ever had a bound pod, and one that the scheduler found no node for."""

    def judge(self, size: int, now: float) -> None:
        """Take over what the last write has changed."""
        bound = sum(bool(pod.node) for pod in self.pods.values())
        self.whole |= bound == size
        if bound and not self.whole:
            self.half_bound |= any(pod.stuck for pod in self.pods.values())
            self.incomplete_since = self.incomplete_since or now
        if self.incomplete_since is not None:
            self.incomplete = max(self.incomplete, now - self.incomplete_since)
        if self.whole or not bound:
            self.incomplete_since = None


class GangHistory:
    """All gangs of a namespace, each with the same number of pods."""

    def __init__(self, namespace: str, size: int) -> None:
        self._namespace, self._size = namespace, size
        self._pods: dict[tuple[str, str], PodRecord] = {}
        self._lines: list[tuple[str, str, str]] = []
        self.gangs: dict[str, GangRecord] = {}

    def read(self, writes: Iterable[PodWrite]) -> GangHistory:
        """Take over writes, in their order."""
        for write in writes:
            self._apply(write)
        return self

    def _apply(self, write: PodWrite) -> None:
        key = write.namespace, write.pod
        if write.what == "create":
            gang = (write.body["metadata"].get("labels") or {}).get(labels.GANG, "")
            self._pods[key] = PodRecord(gang if write.namespace == self._namespace else "")
        if (pod := self._pods.get(key)) is None:
            return
        pod.apply(write)
        self._lines.append((pod.gang, pod.node or pod.nominated, _describe(write, pod)))
        if pod.gang:
            record = self.gangs.setdefault(pod.gang, GangRecord())
            record.pods[write.pod] = pod
            if write.what == "delete":
                del record.pods[write.pod]
            record.judge(self._size, write.at)
        if write.what == "delete":
            del self._pods[key]

    @property
    def half_bound(self) -> list[str]:
        """The gangs that were ever half bound."""
        return [name for name, record in self.gangs.items() if record.half_bound]

    @property
    def longest_incomplete(self) -> float:
        """The longest time for which a gang had some of its pods bound, in seconds."""
        return max((each.incomplete for each in self.gangs.values()), default=0.0)

    def slow(self, limit: float) -> list[str]:
        """The gangs that had some of their pods bound for longer than a number of seconds."""
        return [name for name, record in self.gangs.items() if record.incomplete > limit]

    def explain(self, gangs: Iterable[str]) -> str:
        """All writes of these gangs, and of other pods on their nodes."""
        shown = set(gangs)
        nodes = {node for gang, node, _ in self._lines if gang in shown and node}
        return "\n".join(line for gang, node, line in self._lines if gang in shown or node in nodes)


def _describe(write: PodWrite, pod: PodRecord) -> str:
    facts = {f"bound {pod.node}": pod.node, f"nominated {pod.nominated}": pod.nominated, "stuck": pod.stuck}
    shown = " ".join(text for text, holds in facts.items() if holds)
    spec = write.body.get("spec") or {}
    gpus = [each.get("resources", {}).get("limits") for each in spec.get("containers", ())]
    return f"{write.at:.3f} {write.what} {write.pod} {shown} {gpus or ''} {spec.get('priorityClassName', '')}"
