"""The units that annotations of a set restart (see `plan.desired.restarts`): their syntax, and the parts of
the set that they name."""

from __future__ import annotations

import re

from msgspec import Struct

from grove.api.naming import annotations as keys
from grove.api.types.podcliqueset import PodCliqueSetTemplate

_INDEX = "0|[1-9][0-9]{0,9}"
_UNIT = re.compile(
    rf"(?P<replica>{keys.RESTART_ALL}|{_INDEX})(\.(?P<part>[a-z0-9-]+)(\.(?P<index>{_INDEX}))?)?"
).fullmatch
_FORM = "write all or a replica's index, then .NAME of a clique or group, then .INDEX of a group replica"


class RestartUnit(Struct, frozen=True):
    """A part of a set that can be restarted."""

    replica: int | None = None
    """The replica of the set; None: all of them."""
    part: str = ""
    """The name of a clique or group in the template; empty: the whole replica."""
    group_replica: int | None = None
    """The replica of the group; None: all of them."""

    @property
    def annotation(self) -> str:
        """The annotation of the set that requests the restart."""
        where = keys.RESTART_ALL if self.replica is None else str(self.replica)
        index = "" if self.group_replica is None else str(self.group_replica)
        return keys.RESTART_PREFIX + ".".join(filter(None, (where, self.part, index)))


def parse_unit(annotation: str) -> RestartUnit | None:
    """The unit that an annotation restarts; None if it is not written as one."""
    found = _UNIT(annotation.removeprefix(keys.RESTART_PREFIX))
    if found is None:
        return None
    replica, part, index = found["replica"], found["part"] or "", found["index"]
    return RestartUnit(
        None if replica == keys.RESTART_ALL else int(replica), part, None if index is None else int(index)
    )


def unit_problem(annotation: str, template: PodCliqueSetTemplate) -> str:
    """Why an annotation restarts nothing; empty if it does, or would in a replica that does not exist yet."""
    unit = parse_unit(annotation)
    if unit is None:
        return f"restarts nothing: {_FORM}"
    groups = [each.name for each in template.pod_clique_scaling_groups]
    cliques = [each.name for each in template.cliques]
    if unit.group_replica is not None and unit.part not in groups:
        return f"restarts nothing: no group {unit.part}{_choices(groups)}"
    if unit.part and unit.part not in (*groups, *cliques):
        return f"restarts nothing: no clique or group {unit.part}{_choices((*cliques, *groups))}"
    return ""


def _choices(names: list[str] | tuple[str, ...]) -> str:
    return f": choose one of {', '.join(names)}" if names else ""
