"""For whom the pods of a replica wait, and whether they have what they need to do so.

A pod that starts after others needs an image for its init container and a token to look at pods with. While
one of them is missing it is not made; and a gang is not begun at all if some of its pods could not be made:
the others would hold their GPUs for nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from grove.api.marks import OperatorEnv
from grove.plan.access import is_granted
from grove.plan.expand import Clique, Shape
from grove.plan.model import Complaint
from grove.plan.order import Awaited, awaited, is_ordered
from grove.plan.snapshot import Snapshot

NO_IMAGE = "ERR_INITCONTAINER_ENVIRONMENT_VARIABLE_MISSING"
_NOBODY: Awaited = {}


class Waits:
    """Decides for the cliques of one replica."""

    def __init__(self, snapshot: Snapshot, shape: Shape) -> None:
        self._snapshot, self._shape = snapshot, shape
        self._ordered = is_ordered(snapshot.workload)
        self._provided = bool(snapshot.init_image) and is_granted(snapshot.workload, snapshot.binding)

    def of(self, clique: Clique) -> Awaited:
        """For whom the pods of a clique wait."""
        if not self._ordered:
            return _NOBODY
        return awaited(self._snapshot.workload, self._snapshot.index, self._shape, clique)

    def held(self, clique: Clique) -> bool:
        """Whether pods of the clique cannot be made yet."""
        return self._ordered and not self._provided and bool(self.of(clique))

    def complaints(self, cliques: Iterable[Clique]) -> tuple[Complaint, ...]:
        """What only a person can mend."""
        if not self._ordered or self._snapshot.init_image:
            return ()
        words = (
            f"pods with a start order need an init container: set {OperatorEnv.INIT_IMAGE} on the operator"
        )
        return tuple(Complaint(clique.name, NO_IMAGE, words) for clique in cliques if self.of(clique))
