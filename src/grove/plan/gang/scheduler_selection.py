"""Selects the scheduler of a replica: the one that its set names, else the one that its pods and gang were
created for.

The default scheduler is a matter of configuration and can change. An existing replica keeps its scheduler:
pods of one gang with another scheduler would be placed by themselves, or wait for the others forever.
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
    """Returns the name of a replica's scheduler; empty: the default one. Pods cannot change their scheduler,
    so they take precedence over the label of their gang; without pods the label counts, if it names a
    scheduler that is still `in_use`."""
    if named := named_scheduler(workload):
        return named
    labelled = _scheduler_label(workload, gangs.get(names.base_gang(workload.metadata.name, index)))
    in_pods = Counter(pod.spec.scheduler_name for pod in pods if alive(pod))
    if not in_pods:
        return labelled if labelled in in_use else ""
    return labelled if labelled in in_pods else max(in_pods, key=lambda name: (in_pods[name], name))


def unconfigured_message(scheduler: str, workload: PodCliqueSet) -> str:
    """The error for a replica whose scheduler is not in the configuration."""
    alternative = (
        "recreate the set with one that is listed"
        if named_scheduler(workload)
        else "recreate the replica, which then gets the default scheduler"
    )
    return (
        f"scheduler {scheduler} is not in the operator's configuration, no objects are written for it: "
        f"list it in scheduler.profiles again, or {alternative}"
    )


def _scheduler_label(workload: PodCliqueSet, gang: PodGang | None) -> str:
    if gang is None or controller_uid(gang.metadata) not in ("", workload.metadata.uid):
        return ""
    return gang.metadata.labels.get(labels.SCHEDULER, "")
