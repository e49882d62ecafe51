"""The order in which the pods of one gang are created and released: larger ones first.

A scheduler takes pods in the order in which it sees them, and never moves one to make room for another pod of
the same gang: if pods of one GPU come first, they spread over nodes of which a pod of eight GPUs needs all.
So smaller pods are written once the larger ones are, wherever the scheduler itself chooses the nodes. They
wait for no more than what the gang needs, and not for a clique whose pods are refused, which may last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple, TypeVar

from msgspec.structs import replace

from grove import timing
from grove.api.intents import Create, Patch
from grove.plan.desired.expand import Clique
from grove.plan.placement.demand import pod_shape

Write = TypeVar("Write", bound=Create | Patch)


class PodSize(NamedTuple):
    """What pods are compared by, in this order."""

    gpus: int
    devices: int
    """Extended resources of any other kind."""
    memory: int
    cpu: int


def by_size(cliques: Iterable[Clique]) -> list[tuple[Clique, ...]]:
    """The cliques of a gang, those with the largest pods first; cliques with pods of equal size together, in
    their order."""
    ordered = sorted(cliques, key=_size, reverse=True)
    return [tuple(equal) for _, equal in groupby(ordered, _size)]


def one_after_another(batches: Iterable[Sequence[tuple[Write, bool]]]) -> Iterator[Write]:
    """The writes of all batches, each after the needed ones of the batch before; with each write, whether it
    is needed. Writes are sent in their order, so that it suffices to wait for the last of them."""
    before: tuple[str, ...] = ()
    for batch in batches:
        for write, _ in batch:
            yield replace(write, after=(*write.after, *before))
        needed = [write.id for write, is_needed in batch if is_needed]
        before = tuple(needed[-timing.LARGER_PODS_WAITED_FOR :]) or before


def _size(clique: Clique) -> PodSize:
    return _size_of(bytes(clique.template.spec.pod_spec))


@lru_cache(maxsize=1024)
def _size_of(template: bytes) -> PodSize:
    try:
        requests = pod_shape(template, False, ()).requests
    except ValueError:  # the API server refuses the pods, with its own message
        return PodSize(0, 0, 0, 0)
    extended = {name: amount for name, amount in requests.items() if "/" in name}
    gpus = sum(amount for name, amount in extended.items() if name.endswith("/gpu"))
    return PodSize(gpus, sum(extended.values()) - gpus, requests.get("memory", 0), requests.get("cpu", 0))
