"""What is refused because of the scheduler that a set is for: its backend is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from grove.api.meta import ObjectMeta
from grove.rules import syntax
from grove.rules.model import Facts, FieldError, invalid
from grove.rules.shape import Workload
from grove.schedulers.backend import Backend, Enquiring, Enquiry, Wish

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
        yield from (invalid("spec", backend.name, wrong) for wrong in _refused(backend, workload, facts))


def unkept(workload: Workload, facts: Facts) -> list[FieldError]:
    """Constraints that the scheduler cannot keep: they are refused, never ignored in silence."""
    return [invalid("spec", name, why) for name, why in _unkept(workload, facts, lenient=False)]


def warnings(workload: Workload, facts: Facts) -> Iterator[str]:
    """The same, where its profile says that users are only told."""
    yield from (why for _, why in _unkept(workload, facts, lenient=True))


def enquiries(workload: Workload, facts: Facts) -> tuple[Enquiry, ...]:
    """What must be looked up before a set can be judged."""
    backend = _backend(workload, facts)
    if not isinstance(backend, Enquiring):
        return ()
    try:
        return tuple(backend.enquires(_wish(workload)))
    except Exception:  # it is told where the set is judged
        return ()


def _named(workload: Workload, facts: Facts) -> dict[str, None]:
    """The schedulers that pods ask for, in order."""
    return {pod.scheduler_name or facts.backends.default_name: None for pod in workload.pods}


def _backend(workload: Workload, facts: Facts) -> Backend | None:
    return facts.backends.of(next(iter(_named(workload, facts)), ""))


def _unkept(workload: Workload, facts: Facts, *, lenient: bool) -> Iterator[tuple[str, str]]:
    backend = _backend(workload, facts)
    if backend is not None and (backend.name in facts.backends.lenient) is lenient:
        yield from ((backend.name, why) for why in _heard(backend, backend.cannot_keep, workload))


def _refused(backend: Backend, workload: Workload, facts: Facts) -> Iterator[str]:
    yield from _heard(backend, backend.cannot, workload)
    if isinstance(backend, Enquiring):
        yield from _heard(backend, lambda wish: _unfit(backend, wish, facts), workload)


def _unfit(backend: Enquiring, wish: Wish, facts: Facts) -> Iterator[str]:
    for enquiry in backend.enquires(wish):
        misspelt = [f"{enquiry.where}: {why}" for why in syntax.subdomain(enquiry.name)]
        yield from misspelt
        if not misspelt and enquiry in facts.found:
            wrong = backend.unfit(enquiry, facts.found[enquiry])
            yield from [wrong] if wrong else []


def _heard(backend: Backend, question: Callable[[Wish], Iterable[str]], workload: Workload) -> list[str]:
    """What a backend says. One of somebody else may be at a loss, which is told like any other answer."""
    try:
        return list(question(_wish(workload)))
    except Exception as problem:
        return [f"scheduler backend {backend.name} failed: {type(problem).__name__}: {problem}"]


def _wish(workload: Workload) -> Wish:
    meta = workload.metadata
    return Wish(
        ObjectMeta(meta.called, meta.namespace, labels=meta.labels, annotations=meta.annotations),
        workload.template,
    )
