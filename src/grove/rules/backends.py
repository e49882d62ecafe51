"""What is refused because of the scheduler that a set is for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from grove.api.sets import CliqueTemplate
from grove.rules import syntax
from grove.rules.model import Facts, FieldError, invalid
from grove.rules.shape import Workload

KAI = "kai-scheduler"
VOLCANO = "volcano"
LPX = "lpx-scheduler"
_KAI_QUEUE = "kai.scheduler/queue"
_VOLCANO_QUEUE = "scheduling.grove.io/volcano-queue"
_VOLCANO_DEFAULT = "default"
_PATH = "spec.template.cliques.spec.podSpec.schedulerName"


def errors(workload: Workload, facts: Facts) -> Iterator[FieldError]:
    """One scheduler for all pods, one that is enabled, and nothing that it cannot honour."""
    named = {pod.scheduler_name or facts.default_scheduler: None for pod in workload.pods}
    if len(named) > 1:
        yield invalid(_PATH, list(named), "the schedulerName for all pods have to be the same")
    for name in named:
        if name not in facts.schedulers:
            yield invalid(
                _PATH,
                name,
                "schedulerName must be an enabled scheduler backend; this scheduler is not enabled in "
                f"OperatorConfiguration. Enabled: {', '.join(facts.schedulers)}",
            )
    scheduler = next(iter(named), facts.default_scheduler)
    if scheduler in facts.schedulers and (backend := BACKENDS.get(scheduler)):
        yield from (invalid("spec", scheduler, wrong) for wrong in backend(workload, facts))


def _kai(workload: Workload, _: Facts) -> Iterator[str]:
    asked, wrong = _queue(workload, _KAI_QUEUE, _label_or_annotation)
    if wrong:
        yield wrong
    elif not asked:
        yield f"the KAI scheduler needs a queue: label the PodCliqueSet, or its cliques, with {_KAI_QUEUE}"


def _volcano(workload: Workload, facts: Facts) -> Iterator[str]:
    yield from _no_constraints(workload, facts)
    asked, wrong = _queue(workload, _VOLCANO_QUEUE, _annotation)
    if wrong:
        yield wrong
        return
    queue = asked or _VOLCANO_DEFAULT
    misspelt = [f"annotation {_VOLCANO_QUEUE}: {why}" for why in syntax.subdomain(queue)]
    yield from misspelt
    if not misspelt and facts.volcano_queues is not None:
        state = facts.volcano_queues.get(queue)
        if state is None:
            yield f'Volcano queue "{queue}" not found'
        elif state != "Open":
            yield f'Volcano queue "{queue}" is {state}: it must be Open'


def _no_constraints(workload: Workload, _: Facts) -> Iterator[str]:
    template = workload.template
    constraints = [template.topology_constraint]
    constraints += [clique.topology_constraint for clique in template.cliques]
    constraints += [group.topology_constraint for group in template.pod_clique_scaling_groups]
    if any(constraint is not None for constraint in constraints):
        yield "topology constraints are not supported by this scheduler: remove every topologyConstraint"


BACKENDS: Mapping[str, Callable[[Workload, Facts], Iterator[str]]] = {
    KAI: _kai,
    VOLCANO: _volcano,
    LPX: _no_constraints,
}
"""What each scheduler demands of a set; the others demand nothing."""

_Read = Callable[[Mapping[str, str], Mapping[str, str], str], str]


def _label_or_annotation(labels: Mapping[str, str], annotations: Mapping[str, str], key: str) -> str:
    return labels.get(key) or annotations.get(key, "")


def _annotation(_: Mapping[str, str], annotations: Mapping[str, str], key: str) -> str:
    return annotations.get(key, "")


def _queue(workload: Workload, key: str, read: _Read) -> tuple[str, str]:
    """The queue that set and cliques agree on, or why they do not; both empty if nobody names one."""

    def of(part: CliqueTemplate) -> str:
        return read(part.labels, part.annotations, key)

    asked = {queue: None for clique in workload.template.cliques if (queue := of(clique))}
    own = read(workload.metadata.labels, workload.metadata.annotations, key)
    if own and any(queue != own for queue in asked):
        others = ", ".join(queue for queue in asked if queue != own)
        return "", f"{key} is {own} on the PodCliqueSet but {others} on its cliques: they must be the same"
    if len(asked) > 1:
        return "", f"the cliques name different queues in {key}: {', '.join(asked)}"
    return own or next(iter(asked), ""), ""
