"""An operator for some namespaces: what of its configuration needs rights in the whole cluster."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec.structs import replace

from grove.api.configuration.types import DEFAULT_SCHEDULER, OperatorConfiguration, TopologyMode

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?").fullmatch
_PLACEMENT, _OFF = "placement", "Off"


def limited(config: OperatorConfiguration) -> OperatorConfiguration:
    """The configuration of an operator for some namespaces: unless it says otherwise, gangs are not placed.
    Placement considers all nodes and pods of the cluster."""
    if not config.namespaces:
        return config
    profiles = tuple(
        replace(each, config={_PLACEMENT: _OFF, **each.config}) if each.name == DEFAULT_SCHEDULER else each
        for each in config.scheduler.enabled_profiles
    )
    return replace(config, scheduler=replace(config.scheduler, profiles=profiles))


def namespace_problems(config: OperatorConfiguration) -> Iterator[str]:
    """Names that are wrong, and settings that need the whole cluster, as `key: why`."""
    for index, name in enumerate(config.namespaces):
        if not _NAME(name):
            yield f"namespaces[{index}]: {name!r} is no name of a namespace"
        elif name in config.namespaces[:index]:
            yield f"namespaces[{index}]: {name} is listed twice"
    if not config.namespaces:
        return
    why = "needs the whole cluster: remove it, or namespaces"
    if config.topology_aware_scheduling.enabled:
        yield f"topologyAwareScheduling.enabled: {why}"
    if config.network.auto_mnnvl_enabled:
        yield f"network.autoMNNVLEnabled: {why}"
    if config.dynamo.topology_aware_scheduling.mode is not TopologyMode.NONE:
        yield f"dynamo.topologyAwareScheduling.mode: {why}"
    for index, profile in enumerate(config.scheduler.profiles):
        placement = profile.config.get(_PLACEMENT, _OFF)
        if profile.name == DEFAULT_SCHEDULER and placement not in (_OFF, False):
            yield f"scheduler.profiles[{index}].config.placement: {why}"
