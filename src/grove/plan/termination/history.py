"""The termination history of a replica: when each unit was last restarted, and how often in a row.

A unit is a whole replica of the set, by the name of its base gang, or one replica of a scaling group. The
history is an annotation of the gang, in the write that removes the old members: both happen or neither does.
Scaled gangs also record restarts of the whole replica: one that has not recorded the latest is restarted.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Struct

from grove.api.conditions import ConditionType
from grove.api.json_depth import too_deep
from grove.api.naming import annotations as keys
from grove.api.naming import names
from grove.api.types.podclique import PodCliqueStatus
from grove.api.types.podgang import PodGang
from grove.plan.cliques.health import CliqueHealth
from grove.plan.cliques.state import CliqueState
from grove.plan.conditions import find
from grove.plan.desired.expand import Clique
from grove.plan.snapshot import Snapshot
from grove.plan.timestamps import timestamp


class TerminationRecord(Struct, frozen=True, gc=False, omit_defaults=True):
    """The latest termination of a unit."""

    at: str
    count: int = 1
    """How many terminations there were in a row, without a recovery in between."""
    recovered: bool = False
    """Whether all of the unit has been ready since."""

    @property
    def timestamp(self) -> float:
        return timestamp(self.at)


Records = Mapping[str, TerminationRecord]
"""The records of one gang, by unit."""
_decoder = msgspec.json.Decoder(dict[str, TerminationRecord])


def read_records(gang: PodGang) -> Records:
    """The records of a gang; none if the annotation cannot be decoded."""
    text = gang.metadata.annotations.get(keys.TERMINATIONS, "")
    if not text or too_deep(text.encode()):
        return {}
    try:
        return _decoder.decode(text)
    except msgspec.DecodeError:
        return {}


def to_annotation(records: Records) -> dict[str, str]:
    """The annotation with these records."""
    if not records:
        return {}
    return {keys.TERMINATIONS: msgspec.json.encode(records, order="sorted").decode()}


def unit_of(clique: Clique) -> str:
    """The replica of a group that a clique belongs to; empty outside of groups."""
    return f"{clique.group.name}-{clique.group_replica}" if clique.group else ""


class RestartState(Struct, frozen=True, gc=False):
    """The latest restart of a clique."""

    restarted_at: float = 0.0
    """When it was; 0 if never."""
    pending: bool = False
    """The restart has not reached its pods yet: they are from before it and are deleted next."""


class TerminationHistory:
    """What the gangs of one replica have recorded. A planned restart is not included: it may fail, and must
    not reset `WasScheduled`."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.base = names.base_gang(snapshot.workload.metadata.name, snapshot.index)
        self.records = {
            name: records for name, gang in snapshot.gangs.items() if (records := read_records(gang))
        }
        """By gang; those without records are left out."""

    def of_gang(self, gang: str) -> Records:
        """The records of a gang, by unit."""
        return self.records.get(gang, {})

    @property
    def latest(self) -> TerminationRecord | None:
        """The latest restart of the whole replica."""
        return self.of_gang(self.base).get(self.base)

    @property
    def restarted_at(self) -> float:
        """When the whole replica was last restarted; 0 if never."""
        return self.latest.timestamp if self.latest else 0.0

    def has_recorded(self, gang: str, at: str) -> bool:
        """Whether a gang has recorded the restart of the whole replica at this time."""
        known = self.of_gang(gang).get(self.base)
        return known is not None and known.at == at

    def is_restart_pending(self, gang: str) -> bool:
        """Whether a gang has not recorded the latest restart of the whole replica yet: its pods are from
        before."""
        return self.latest is not None and not self.has_recorded(gang, self.latest.at)

    def restart_state(self, clique: Clique) -> RestartState:
        """The latest restart of a clique."""
        if not self.records:
            return _NEVER
        own = self.of_gang(clique.gang)
        units = [own.get(unit_of(clique)), own.get(self.base)]
        restarted_at = max((record.timestamp for record in units if record), default=0.0)
        return RestartState(restarted_at, self.is_restart_pending(clique.gang))

    def was_scheduled(self, clique: CliqueState) -> bool:
        """Whether a clique has been scheduled since its last restart."""
        return clique.found is not None and has_been_scheduled(
            clique.found.status, clique.view, self.restart_state(clique.wanted)
        )


_NEVER = RestartState()


def has_been_scheduled(before: PodCliqueStatus, view: CliqueHealth, restart: RestartState) -> bool:
    """Whether enough pods have been scheduled since the last restart of the clique. That is recorded in a
    condition: it cannot be derived from the current pods."""
    known = find(before.conditions, ConditionType.WAS_SCHEDULED)
    if view.wanted.replicas and view.scheduled and not restart.pending:
        return True
    return (
        known is not None
        and known.status == "True"
        and timestamp(known.last_transition_time) >= restart.restarted_at
    )
