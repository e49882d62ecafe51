"""Reads and writes the termination history of a gang: when a unit was last restarted, and how often in a row.

A unit is a whole replica of the set, by the name of its base gang, or one replica of a scaling group. The
history is an annotation of the gang, in the write that removes the old members: both happen or neither does.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Struct

from grove.api.json_depth import too_deep
from grove.api.naming import annotations as keys
from grove.api.types.podgang import PodGang
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


TerminationHistory = dict[str, TerminationRecord]
_decoder = msgspec.json.Decoder(TerminationHistory)


def read(gang: PodGang | None) -> TerminationHistory:
    """The records of a gang; none if the annotation cannot be decoded."""
    text = gang.metadata.annotations.get(keys.TERMINATIONS, "") if gang else ""
    if too_deep(text.encode()):
        return {}
    try:
        return _decoder.decode(text) if text else {}
    except msgspec.DecodeError:
        return {}


def to_annotation(records: Mapping[str, TerminationRecord]) -> dict[str, str]:
    """The annotation with these records."""
    if not records:
        return {}
    return {keys.TERMINATIONS: msgspec.json.encode(records, order="sorted").decode()}
