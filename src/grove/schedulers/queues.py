"""The queue of a set, for backends with queues. The set or its cliques name it; they must agree."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from grove.schedulers.backend import SchedulingSpec

Read = Callable[[Mapping[str, str], Mapping[str, str], str], str]


def label_or_annotation(labels: Mapping[str, str], annotations: Mapping[str, str], key: str) -> str:
    return labels.get(key) or annotations.get(key, "")


def annotation(_: Mapping[str, str], annotations: Mapping[str, str], key: str) -> str:
    return annotations.get(key, "").strip()


def queue(scheduling_spec: SchedulingSpec, key: str, read: Read) -> tuple[str, str]:
    """(The queue, why it cannot be determined); both empty if neither the set nor a clique names one."""
    own = read(scheduling_spec.metadata.labels, scheduling_spec.metadata.annotations, key)
    asked = {
        named: None
        for clique in scheduling_spec.template.cliques
        if (named := read(clique.labels, clique.annotations, key))
    }
    if own and (others := [named for named in asked if named != own]):
        listed = ", ".join(others)
        return "", f"{key} is {own} on the PodCliqueSet but {listed} on its cliques: they must be the same"
    if len(asked) > 1:
        return "", f"the cliques name different queues in {key}: {', '.join(asked)}"
    return own or next(iter(asked), ""), ""
