"""What is refused because of the scheduler that a set is for: its backend is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from grove.api.meta import ObjectMeta
from grove.rules import syntax
from grove.rules.decode import Workload
from grove.rules.model import Facts, FieldError, invalid
from grove.schedulers.backend import ClusterLookup, LookupBackend, SchedulerBackend, SchedulingSpec

_PATH = "spec.template.cliques.spec.podSpec.schedulerName"


def errors(workload: Workload, facts: Facts) -> Iterator[FieldError]:
    """One scheduler for all pods, one that is enabled, and nothing that it cannot honour."""
    named = _named(workload, facts)
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
    backend = _backend(workload, facts)
    if backend is not None:
        yield from (
            invalid("spec", backend.name, wrong) for wrong in _backend_errors(backend, workload, facts)
        )


def unsupported_constraints(workload: Workload, facts: Facts) -> list[FieldError]:
    """Constraints that the scheduler cannot keep: they are refused, never ignored in silence."""
    return [
        invalid("spec", name, why) for name, why in _unsupported_constraints(workload, facts, lenient=False)
    ]


def warnings(workload: Workload, facts: Facts) -> Iterator[str]:
    """The same, where its profile says that users are only told."""
    yield from (why for _, why in _unsupported_constraints(workload, facts, lenient=True))


def lookups(workload: Workload, facts: Facts) -> tuple[ClusterLookup, ...]:
    """What must be looked up before a set can be judged."""
    backend = _backend(workload, facts)
    if not isinstance(backend, LookupBackend):
        return ()
    try:
        return tuple(backend.lookups(_scheduling_spec(workload)))
    except Exception:  # it is told where the set is judged
        return ()


def _named(workload: Workload, facts: Facts) -> dict[str, None]:
    """The schedulers that pods ask for, in order."""
    return {pod.scheduler_name or facts.backends.default_name: None for pod in workload.pods}


def _backend(workload: Workload, facts: Facts) -> SchedulerBackend | None:
    return facts.backends.of(next(iter(_named(workload, facts)), ""))


def _unsupported_constraints(workload: Workload, facts: Facts, *, lenient: bool) -> Iterator[tuple[str, str]]:
    backend = _backend(workload, facts)
    if backend is not None and (backend.name in facts.backends.lenient) is lenient:
        yield from (
            (backend.name, why) for why in _call_backend(backend, backend.unsupported_constraints, workload)
        )


def _backend_errors(backend: SchedulerBackend, workload: Workload, facts: Facts) -> Iterator[str]:
    yield from _call_backend(backend, backend.unschedulable_reasons, workload)
    if isinstance(backend, LookupBackend):
        yield from _call_backend(
            backend, lambda scheduling_spec: _lookup_errors(backend, scheduling_spec, facts), workload
        )


def _lookup_errors(backend: LookupBackend, scheduling_spec: SchedulingSpec, facts: Facts) -> Iterator[str]:
    for lookup in backend.lookups(scheduling_spec):
        misspelt = [f"{lookup.where}: {why}" for why in syntax.subdomain(lookup.name)]
        yield from misspelt
        if not misspelt and lookup in facts.found:
            wrong = backend.lookup_problem(lookup, facts.found[lookup])
            yield from [wrong] if wrong else []


def _call_backend(
    backend: SchedulerBackend, question: Callable[[SchedulingSpec], Iterable[str]], workload: Workload
) -> list[str]:
    """What a backend says. One of somebody else may be at a loss, which is told like any other answer."""
    try:
        return list(question(_scheduling_spec(workload)))
    except Exception as problem:
        return [f"scheduler backend {backend.name} failed: {type(problem).__name__}: {problem}"]


def _scheduling_spec(workload: Workload) -> SchedulingSpec:
    meta = workload.metadata
    return SchedulingSpec(
        ObjectMeta(meta.effective_name, meta.namespace, labels=meta.labels, annotations=meta.annotations),
        workload.template,
    )
