"""Restarts that users request: annotations of the set, one for each unit, with any value.

    grove.io/restart-all            all replicas
    grove.io/restart-all.decode     in all replicas, clique or group decode
    grove.io/restart-0              replica 0
    grove.io/restart-0.decode       in replica 0, clique or group decode
    grove.io/restart-0.decode.2     in replica 0, replica 2 of group decode

A new value makes the pods of the unit outdated, and they are replaced by a rollout, as after a change of the
template. Each pod has a token of each request that it was created after. So neither a clock nor the removal
of a request matters: only a request whose token a pod lacks makes it outdated.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping

import msgspec

from grove.api.naming import annotations as keys
from grove.rules.restart_units import parse_unit

Requests = Mapping[str, str]
"""By unit, the value of its annotation."""
_SEPARATOR = ","


def restart_requests(annotations: Mapping[str, str]) -> dict[str, str]:
    """The restarts that the annotations of a set request; what is not written as a unit requests none."""
    prefix = keys.RESTART_PREFIX
    return {
        key.removeprefix(prefix): value
        for key, value in annotations.items()
        if key.startswith(prefix) and parse_unit(key) is not None
    }


def requests_hash(requests: Requests) -> str:
    """A hash of all requests, which is part of the generation hash; empty if there are none."""
    return _digest(msgspec.json.encode(requests, order="sorted")) if requests else ""


def restart_tokens(
    requests: Requests, replica: int, clique: str, group: str = "", group_replica: int = 0
) -> tuple[str, ...]:
    """The tokens of all requests that concern the pods of a clique, by the names in the template."""
    if not requests:
        return ()
    units = _units_of(replica, clique, group, group_replica)
    found = (f"{unit}={requests[unit]}" for unit in units if unit in requests)
    return tuple(sorted(_digest(request.encode()) for request in found))


def _units_of(replica: int, clique: str, group: str, group_replica: int) -> Iterator[str]:
    for where in (keys.RESTART_ALL, str(replica)):
        yield where
        yield f"{where}.{clique}"
        if group:
            yield f"{where}.{group}"
            yield f"{where}.{group}.{group_replica}"


def to_annotation(tokens: tuple[str, ...]) -> dict[str, str]:
    """The annotation of pods that are created after these requests."""
    return {keys.RESTARTS: _SEPARATOR.join(tokens)} if tokens else {}


def is_restarted(annotations: Mapping[str, str], tokens: tuple[str, ...]) -> bool:
    """Whether a pod with these annotations was created after all of these requests."""
    return not tokens or set(annotations.get(keys.RESTARTS, "").split(_SEPARATOR)).issuperset(tokens)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]  # 64 bits, as of a template hash
