"""For whom the pods of a replica wait, and whether they have what they need to do so.

A pod that starts after others needs an image for its init container and a token to look at pods with. While
one of them is missing it is not made; and a gang is not begun at all if some of its pods could not be made:
the others would hold their GPUs for nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from grove.api.naming.well_known import OperatorEnv
from grove.plan.desired.expand import Clique, ReplicaLayout
from grove.plan.desired.startup_order import StartupParents, is_ordered, startup_parents
from grove.plan.model import UserError
from grove.plan.rbac import has_rbac
from grove.plan.snapshot import Snapshot

NO_IMAGE = "ERR_INITCONTAINER_ENVIRONMENT_VARIABLE_MISSING"
_NO_PARENTS: StartupParents = {}


class StartupDependencies:
    """Decides for the cliques of one replica."""

    def __init__(self, snapshot: Snapshot, layout: ReplicaLayout) -> None:
        self._snapshot, self._layout = snapshot, layout
        self._ordered = is_ordered(snapshot.workload)
        self._prerequisites_met = bool(snapshot.init_image) and has_rbac(snapshot.workload, snapshot.binding)

    def parents_of(self, clique: Clique) -> StartupParents:
        """For whom the pods of a clique wait."""
        if not self._ordered:
            return _NO_PARENTS
        return startup_parents(self._snapshot.workload, self._snapshot.index, self._layout, clique)

    def blocked(self, clique: Clique) -> bool:
        """Whether pods of the clique cannot be made yet."""
        return self._ordered and not self._prerequisites_met and bool(self.parents_of(clique))

    def errors(self, cliques: Iterable[Clique]) -> tuple[UserError, ...]:
        """What only a person can mend."""
        if not self._ordered or self._snapshot.init_image:
            return ()
        message = (
            f"pods with a start order need an init container: set {OperatorEnv.INIT_IMAGE} on the operator"
        )
        return tuple(
            UserError(clique.name, NO_IMAGE, message) for clique in cliques if self.parents_of(clique)
        )
