"""Whether a pod of others could be bound to a node, as far as the kept labels of nodes say.

Other owners select by any label. To keep all of them would need much memory, and to list the nodes again for
each new key would let every tenant cause such lists. So what a selector says about other keys counts as met.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from msgspec.structs import replace

from grove.topology.placement.eligibility import rejection
from grove.topology.placement.model import Node, PodShape, Term


def may_run(shape: PodShape, node: Node, keys: Collection[str]) -> bool:
    """Whether a pod may be bound to a node of which the labels of these keys are known."""
    selector = {key: value for key, value in shape.node_selector.items() if key in keys}
    known = replace(shape, node_selector=selector, affinity=_known_terms(shape.affinity, keys))
    return rejection(known, node) is None


def _known_terms(terms: tuple[Term, ...] | None, keys: Collection[str]) -> tuple[Term, ...] | None:
    """The terms without requirements about other keys; None if one of them then requires nothing."""
    known = tuple(_known(terms or (), keys))
    return None if terms is None or None in known else tuple(filter(None, known))


def _known(terms: tuple[Term, ...], keys: Collection[str]) -> Iterator[Term | None]:
    for term in terms:
        left = tuple(each for each in term.expressions if each.key in keys)
        if left or term.fields or not term.expressions:
            yield Term(left, term.fields)
        else:
            yield None
