"""What a gang remembers of its terminations: when a unit was last started anew, and how often in a row.

A unit is a whole replica of the set, by the name of its base gang, or one replica of a scaling group. It is
noted on the gang itself, in the write that takes the old members off: either both happened or neither did.
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
    """How many there were in a row, without it having recovered in between."""
    recovered: bool = False
    """Whether all of it has been ready since."""

    @property
    def timestamp(self) -> float:
        return timestamp(self.at)


TerminationHistory = dict[str, TerminationRecord]
_decoder = msgspec.json.Decoder(TerminationHistory)


def read(gang: PodGang | None) -> TerminationHistory:
    """The records of a gang; none if somebody spoilt them."""
    text = gang.metadata.annotations.get(keys.TERMINATIONS, "") if gang else ""
    if too_deep(text.encode()):
        return {}
    try:
        return _decoder.decode(text) if text else {}
    except msgspec.DecodeError:
        return {}


def to_annotation(records: Mapping[str, TerminationRecord]) -> dict[str, str]:
    """The annotation that says so."""
    if not records:
        return {}
    return {keys.TERMINATIONS: msgspec.json.encode(records, order="sorted").decode()}
