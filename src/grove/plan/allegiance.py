"""Which scheduler a replica is true to: the one that its set names, else the one that it was made for.

What the default scheduler is, the configuration says, and may say differently later. A replica that is there
stays with the one of before: half a gang in the hands of another scheduler would be placed by itself, or wait
for the other half for ever.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping

from grove.api import labels, names
from grove.api.gangs import PodGang
from grove.api.pods import Pod
from grove.api.sets import PodCliqueSet
from grove.plan.compose import named_scheduler
from grove.plan.pods import alive, controller_uid


def scheduler_of(
    workload: PodCliqueSet,
    index: int,
    gangs: Mapping[str, PodGang],
    pods: Iterable[Pod],
    in_use: Container[str] = (),
) -> str:
    """The name of a replica's scheduler; empty: whichever is the default one. Pods cannot change theirs, so
    they are believed where the label of their gang says otherwise; while there are none, the gang is, if it
    names a scheduler that is still in use."""
    if named := named_scheduler(workload):
        return named
    noted = _noted(workload, gangs.get(names.base_gang(workload.metadata.name, index)))
    serving = Counter(pod.spec.scheduler_name for pod in pods if alive(pod))
    if not serving:
        return noted if noted in in_use else ""
    return noted if noted in serving else max(serving, key=lambda name: (serving[name], name))


def unlisted(scheduler: str, workload: PodCliqueSet) -> str:
    """That the configuration does not list the scheduler of a replica, and what would help."""
    otherwise = (
        "recreate the set for one that is listed"
        if named_scheduler(workload)
        else "recreate the replica, which then gets the default scheduler"
    )
    return (
        f"scheduler {scheduler} is not in the operator's configuration and is told nothing: "
        f"list it in scheduler.profiles again, or {otherwise}"
    )


def _noted(workload: PodCliqueSet, gang: PodGang | None) -> str:
    if gang is None or controller_uid(gang.metadata) not in ("", workload.metadata.uid):
        return ""
    return gang.metadata.labels.get(labels.SCHEDULER, "")
