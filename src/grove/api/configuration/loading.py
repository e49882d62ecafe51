"""Loads the operator's configuration and validates it, for the `operator` command.

All mistakes are reported at once, so that a file can be corrected in one go. Whether a listed scheduler or
fabric vendor exists is validated by their registries.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from enum import StrEnum
from typing import Any, get_args, get_origin

import msgspec

from grove.api.configuration.types import LeaderElection, OperatorConfiguration, Scheduler
from grove.api.crds import type_properties
from grove.api.formats import durations
from grove.api.wire import Wire

_HIGHEST_PORT = 65535


class ConfigurationError(ValueError):
    """The configuration cannot be used; `problems` names every key that is wrong, as `key: why`."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        self.problems = problems
        super().__init__("; ".join(problems))


def load(document: object) -> OperatorConfiguration:
    """The configuration in a parsed YAML or JSON document; an empty one means all defaults."""
    config, wrong = check(document)
    if wrong:
        raise ConfigurationError(wrong)
    return config


def check(document: object) -> tuple[OperatorConfiguration, tuple[str, ...]]:
    """The valid part of a document as a configuration, and every problem, as `key: why`."""
    invalid: list[str] = []
    valid = _collect_valid(
        _without_nulls({} if document is None else document), OperatorConfiguration, "", invalid
    )
    config = OperatorConfiguration() if valid is None else msgspec.convert(valid, type=OperatorConfiguration)
    # The other keys of a section were not written to go with the default of an invalid one: not checked.
    incomplete = {_section(problem) for problem in invalid} - {""}
    others = (problem for problem in problems(config) if _section(problem) not in incomplete)
    return config, (*invalid, *others)


def unknown_keys(document: object, kind: Any = OperatorConfiguration, path: str = "") -> Iterator[str]:
    """Every key that this version does not know: of another version, or misspelled."""
    if isinstance(kind, type) and issubclass(kind, Wire) and isinstance(document, dict):
        fields = {field.name: field.shape.type for field in type_properties.properties(kind)}
        for key, value in document.items():
            inner = f"{path}.{key}".lstrip(".")
            if key in fields:
                yield from unknown_keys(value, fields[key], inner)
            else:
                yield inner
    elif get_origin(kind) is tuple and isinstance(document, list):
        for index, item in enumerate(document):
            yield from unknown_keys(item, type_properties.shape(get_args(kind)[0]).type, f"{path}[{index}]")


def _section(problem: str) -> str:
    """The path of the mapping that holds the key of a problem; for a list item, that holds the list."""
    return problem.partition(":")[0].partition("[")[0].rpartition(".")[0]


def _without_nulls(value: Any) -> Any:
    """A key without a value gets its default, as when the lines below it are commented out."""
    if isinstance(value, dict):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    return [_without_nulls(inner) for inner in value] if isinstance(value, list) else value


def _collect_valid(value: Any, kind: Any, path: str, wrong: list[str]) -> Any:
    """The valid part of a value, None if there is none; `wrong` gets the problems of the rest."""
    if isinstance(kind, type) and issubclass(kind, Wire) and isinstance(value, dict):
        return _collect_valid_mapping(value, kind, path, wrong)
    if get_origin(kind) is tuple and isinstance(value, list):
        inner = type_properties.shape(get_args(kind)[0]).type
        items = [_collect_valid(item, inner, f"{path}[{index}]", wrong) for index, item in enumerate(value)]
        return None if None in items else items
    try:
        msgspec.convert(value, type=kind)
    except msgspec.ValidationError:
        wrong.append(f"{path or 'the file'}: must be {_type_name(kind)}, not {_shown(value)}")
        return None
    return value


def _collect_valid_mapping(value: dict[str, Any], kind: type[Wire], path: str, wrong: list[str]) -> Any:
    fitting, whole = dict(value), True
    for field in type_properties.properties(kind):
        inner = f"{path}.{field.name}".lstrip(".")
        if field.name in value:
            fitting[field.name] = _collect_valid(value[field.name], field.shape.type, inner, wrong)
        elif field.required and not _has_default(kind, field.name):
            wrong.append(f"{inner}: must be set")
            fitting[field.name] = None
        whole = whole and (fitting.get(field.name, 0) is not None or _has_default(kind, field.name))
    return {key: inner for key, inner in fitting.items() if inner is not None} if whole else None


def _type_name(kind: Any) -> str:
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return " or ".join(kind)
    return _PLAIN.get(get_origin(kind) or kind, "a mapping")


_PLAIN = {str: "text", int: "a whole number", float: "a number", bool: "true or false", tuple: "a list"}


def _shown(value: object) -> str:
    """The value as JSON; for lists and mappings their type only."""
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    return msgspec.json.encode(value).decode()


def _has_default(kind: type[Wire], name: str) -> bool:
    return any(field.encode_name == name and not field.required for field in msgspec.structs.fields(kind))


def problems(config: OperatorConfiguration) -> Iterator[str]:
    """Every problem of a decoded configuration, as `key: why`."""
    plain = OperatorConfiguration()
    if (config.api_version, config.kind) != (plain.api_version, plain.kind):
        yield f"kind: must be {plain.kind} of {plain.api_version}, not {config.kind} of {config.api_version}"
    if config.runtime_client_connection.burst < 0:
        yield "runtimeClientConnection.burst: must not be negative"
    if config.leader_election.enabled:
        yield from _election_problems(config.leader_election)
    yield from _port_problems(config)
    for field in msgspec.structs.fields(config.controllers):
        if getattr(config.controllers, field.name).concurrent_syncs <= 0:
            yield f"controllers.{field.encode_name}.concurrentSyncs: must be greater than 0"
    yield from _scheduler_problems(config.scheduler)
    if config.limits.pods_per_set < 1:
        yield f"limits.podsPerSet: must be at least 1, not {config.limits.pods_per_set}"


def _election_problems(election: LeaderElection) -> Iterator[str]:
    read: dict[str, timedelta] = {}
    for key, text in (
        ("leaseDuration", election.lease_duration),
        ("renewDeadline", election.renew_deadline),
        ("retryPeriod", election.retry_period),
    ):
        try:
            read[key] = durations.parse(text)
        except ValueError as error:
            yield f"leaderElection.{key}: {error}"
        else:
            if read[key] <= timedelta():
                yield f"leaderElection.{key}: must be greater than 0"
    for longer, shorter in (("leaseDuration", "renewDeadline"), ("renewDeadline", "retryPeriod")):
        if read.get(longer, timedelta.max) <= read.get(shorter, timedelta.min):
            yield f"leaderElection.{longer}: must be greater than {shorter}"
    if election.resource_lock != "leases":
        yield f"leaderElection.resourceLock: must be leases, not {election.resource_lock or 'empty'}"
    if not election.resource_name:
        yield "leaderElection.resourceName: must be set"


def _port_problems(config: OperatorConfiguration) -> Iterator[str]:
    ports = {
        "server.webhooks.port": config.server.webhooks.port,
        "server.healthProbes.port": config.server.health_probes.port,
        "server.metrics.port": config.server.metrics.port,
    }
    if config.debugging is not None:
        ports["debugging.pprofBindPort"] = config.debugging.pprof_bind_port
    for key, port in ports.items():
        if not 0 <= port <= _HIGHEST_PORT:
            yield f"{key}: must be between 0 (any free port) and {_HIGHEST_PORT}, not {port}"


def _scheduler_problems(scheduler: Scheduler) -> Iterator[str]:
    """Problems of the profiles. That each backend exists is checked by `grove.schedulers.registry`."""
    names = [profile.name for profile in scheduler.enabled_profiles]
    for index, name in enumerate(names):
        if not name:
            yield f"scheduler.profiles[{index}].name: must be set"
        elif name in names[:index]:
            yield f"scheduler.profiles[{index}].name: {name} is listed twice"
    if scheduler.default_profile_name not in names:
        yield f"scheduler.defaultProfileName: {scheduler.default_profile_name} is not one of the profiles"
