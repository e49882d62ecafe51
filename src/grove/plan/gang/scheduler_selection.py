"""Which scheduler a replica is true to: the one that its set names, else the one that it was made for.

What the default scheduler is, the configuration says, and may say differently later. A replica that is there
stays with the one of before: half a gang in the hands of another scheduler would be placed by itself, or wait
for the other half for ever.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping

from grove.api.naming import labels, names
from grove.api.types.pod import Pod
from grove.api.types.podcliqueset import PodCliqueSet
from grove.api.types.podgang import PodGang
from grove.plan.desired.objects import named_scheduler
from grove.plan.members.pod_state import alive, controller_uid


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
    labelled = _scheduler_label(workload, gangs.get(names.base_gang(workload.metadata.name, index)))
    in_pods = Counter(pod.spec.scheduler_name for pod in pods if alive(pod))
    if not in_pods:
        return labelled if labelled in in_use else ""
    return labelled if labelled in in_pods else max(in_pods, key=lambda name: (in_pods[name], name))


def unconfigured_message(scheduler: str, workload: PodCliqueSet) -> str:
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


def _scheduler_label(workload: PodCliqueSet, gang: PodGang | None) -> str:
    if gang is None or controller_uid(gang.metadata) not in ("", workload.metadata.uid):
        return ""
    return gang.metadata.labels.get(labels.SCHEDULER, "")
