"""Decides which cliques the pods of a replica wait for, and whether the prerequisites of that wait exist.

A pod that starts after others needs an image for its init container and a token to read pods with. While one
of them is missing, or start orders are disabled, the pod is not created; and a gang is not created at all if
some of its pods could not be: the others would hold GPUs for nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from grove.api.error_codes import ErrorCode
from grove.api.naming.well_known import OperatorEnv
from grove.api.types.podclique import PodClique
from grove.plan.desired.expand import Clique, ReplicaLayout
from grove.plan.desired.startup_order import StartupParents, is_ordered, startup_parents
from grove.plan.model import UserError
from grove.plan.rbac import has_rbac
from grove.plan.snapshot import Snapshot
from grove.plan.writes.builders import child_reference

_NO_PARENTS: StartupParents = {}
_DISABLED = (
    "pods with a startup order are not created, since start orders are disabled on this operator: "
    "set startOrder.enabled in its configuration"
)
_NO_IMAGE = (
    "pods with a startup order need an image for their init container: "
    f"set {OperatorEnv.INIT_IMAGE} on the operator"
)


class StartupDependencies:
    """Decides for the cliques of one replica."""

    def __init__(self, snapshot: Snapshot, layout: ReplicaLayout) -> None:
        self._snapshot, self._layout = snapshot, layout
        self._ordered = is_ordered(snapshot.workload)
        self._prerequisites_met = (
            snapshot.start_order
            and bool(snapshot.init_image)
            and has_rbac(snapshot.workload, snapshot.binding)
        )

    def parents_of(self, clique: Clique) -> StartupParents:
        """The cliques that the pods of a clique wait for."""
        if not self._ordered:
            return _NO_PARENTS
        return startup_parents(self._snapshot.workload, self._snapshot.index, self._layout, clique)

    def blocked(self, clique: Clique) -> bool:
        """Whether pods of the clique cannot be created yet."""
        return self._ordered and not self._prerequisites_met and bool(self.parents_of(clique))

    def errors(self, cliques: Iterable[Clique]) -> tuple[UserError, ...]:
        """Problems that only a user can solve."""
        enabled = self._snapshot.start_order
        if not self._ordered or (enabled and self._snapshot.init_image):
            return ()
        code = ErrorCode.INIT_IMAGE_MISSING if enabled else ErrorCode.START_ORDER_DISABLED
        message = _NO_IMAGE if enabled else _DISABLED
        waiting = (clique.name for clique in cliques if self.parents_of(clique))
        references = (child_reference(self._snapshot.workload, PodClique.KIND, name) for name in waiting)
        return tuple(UserError(code, message, reference) for reference in references)
