"""Loads the operator's configuration and validates it, for the `operator` command.

All mistakes are reported at once, so that a file can be corrected in one go. Whether a listed scheduler or
fabric vendor exists is validated by their registries.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import timedelta
from difflib import get_close_matches
from enum import StrEnum
from typing import Any, get_args, get_origin

import msgspec

from grove import timing
from grove.api.configuration.default_scheduler import NEVER, DefaultSchedulerConfig, PlacementMode
from grove.api.configuration.namespaces import limited, namespace_problems
from grove.api.configuration.types import (
    DEFAULT_SCHEDULER,
    DomainPacking,
    LeaderElection,
    OperatorConfiguration,
    Scheduler,
    SchedulerProfile,
)
from grove.api.crds import type_properties
from grove.api.field_errors import ErrorType, FieldError, forbidden, invalid
from grove.api.formats import durations
from grove.api.shapes.structs import StructReader, is_struct, struct_fields
from grove.api.shapes.type_errors import type_name, without_nulls

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
    value = _without_empty_keys(document)
    errors = [each for each in _FileReader().errors(value, OperatorConfiguration) if not _is_unknown(each)]
    wrong = frozenset(each.path for each in errors)
    valid = _valid_part(value, OperatorConfiguration, "", wrong)
    config = OperatorConfiguration() if valid is None else msgspec.convert(valid, type=OperatorConfiguration)
    misspelled = [each for each in _unknown(document) if each.problem is ErrorType.UNSUPPORTED]
    found = [f"{each.path}: {each.detail or 'must be set'}" for each in (*errors, *misspelled)]
    return limited(config), (*found, *problems(config, wrong))


def load_default_scheduler(config: Mapping[str, Any]) -> DefaultSchedulerConfig:
    """The `config` of the profile of the default scheduler. Raises ConfigurationError."""
    value = without_nulls(dict(config))
    if value.get("placement") is False:  # many readers of YAML, Helm among them, take `Off` for false
        value["placement"] = PlacementMode.OFF.value
    errors = [each for each in _FileReader().errors(value, DefaultSchedulerConfig) if not _is_unknown(each)]
    valid = _valid_part(value, DefaultSchedulerConfig, "", frozenset(each.path for each in errors))
    loaded = msgspec.convert(valid, type=DefaultSchedulerConfig)
    wrong = (*(f"{each.path}: {each.detail}" for each in errors), *_default_scheduler_problems(loaded))
    if wrong:
        raise ConfigurationError(wrong)
    return loaded


def unknown_keys(document: object, without_settings: Collection[str] = ()) -> Iterator[FieldError]:
    """Every key that this version does not know and that is no misspelling of a known one, such as a key of
    another version. `without_settings`: the schedulers whose profiles have no `config`."""
    for each in _unknown(document):
        if each.problem is ErrorType.FORBIDDEN:
            yield each
    for index, profile in _profiles(document):
        name, config = profile.get("name"), profile.get("config")
        if isinstance(name, str) and name in without_settings and isinstance(config, dict):
            why = f"{name} has no settings: remove it"
            yield from (forbidden(f"scheduler.profiles[{index}].config.{key}", why) for key in config)


def usable_profiles(document: object) -> Iterator[tuple[int, SchedulerProfile]]:
    """The scheduler profiles with a name and their positions, whatever else is wrong in the document."""
    for index, profile in _profiles(document):
        config = profile.get("config")
        if isinstance(name := profile.get("name"), str) and name:
            yield index, SchedulerProfile(name, without_nulls(config) if isinstance(config, dict) else {})


def _profiles(document: object) -> Iterator[tuple[int, dict[str, Any]]]:
    scheduler = document.get("scheduler") if isinstance(document, dict) else None
    profiles = scheduler.get("profiles") if isinstance(scheduler, dict) else None
    for index, profile in enumerate(profiles if isinstance(profiles, list) else ()):
        if isinstance(profile, dict):
            yield index, profile


def _unknown(document: object) -> Iterator[FieldError]:
    """Errors for all unknown keys, also for those without a value."""
    reader = _FileReader()
    yield from filter(_is_unknown, reader.errors({} if document is None else document, OperatorConfiguration))
    for index, profile in _profiles(document):
        if profile.get("name") == DEFAULT_SCHEDULER:
            path = f"scheduler.profiles[{index}].config"
            errors = reader.errors(profile.get("config") or {}, DefaultSchedulerConfig, path)
            yield from filter(_is_unknown, errors)


def _is_unknown(error: FieldError) -> bool:
    return error.problem in (ErrorType.FORBIDDEN, ErrorType.UNSUPPORTED)


class _FileReader(StructReader):
    """Reports what is wrong in the file in words that fit a file: `must be text, not 1`."""

    root = "the file"

    def type_error(self, path: str, value: Any, wanted: str) -> FieldError:
        return invalid(path, value, f"must be {wanted}, not {_shown(value)}")

    def choice_error(self, path: str, value: Any, choices: type[StrEnum]) -> FieldError:
        return self.type_error(path, value, " or ".join(choices))

    def unknown_field_errors(
        self, path: str, name: str, value: Any, known: Iterable[str]
    ) -> Iterator[FieldError]:
        """A key that is almost a known one is a mistake; any other may be a key of another version."""
        del value
        if near := get_close_matches(name, list(known), 1, timing.MISSPELLED_KEY):
            yield FieldError(path, ErrorType.UNSUPPORTED, name, f"unknown key: did you mean {near[0]}?")
        else:
            yield forbidden(path, "unknown key: this version does not have it, remove it")


def _without_empty_keys(document: object) -> object:
    """A key without a value gets its default, as when the lines below it are commented out."""
    return _with_off(without_nulls({} if document is None else document))


def _with_off(value: object) -> object:
    """The document with `off` where many readers of YAML, Helm among them, have taken it for false."""
    network = value.get("network") if isinstance(value, dict) else None
    if (
        not isinstance(value, dict)
        or not isinstance(network, dict)
        or network.get("packDomains") is not False
    ):
        return value
    return {**value, "network": {**network, "packDomains": DomainPacking.OFF.value}}


def _valid_part(value: Any, kind: Any, path: str, wrong: frozenset[str]) -> Any:
    """The part of a value that has the right types, so that the rest gets its defaults; None if there is
    none."""
    if path in wrong:
        return None
    if is_struct(kind):
        if not isinstance(value, dict):
            return None
        valid = {}
        for name, field in struct_fields(kind).items():
            inner = f"{path}.{name}".lstrip(".")
            if (part := _valid_part(value.get(name), field.shape.type, inner, wrong)) is not None:
                valid[name] = part
            elif field.required:
                return None
        return valid
    if get_origin(kind) is tuple and isinstance(value, list):
        inner_kind = type_properties.shape(get_args(kind)[0]).type
        items = [_valid_part(each, inner_kind, f"{path}[{index}]", wrong) for index, each in enumerate(value)]
        return None if None in items else items
    return None if any(each.startswith(f"{path}[") for each in wrong) else value


def _shown(value: object) -> str:
    """The value as JSON; for lists and objects their type only."""
    if isinstance(value, dict | list):
        return type_name(type(value))
    return msgspec.json.encode(value).decode()


def problems(config: OperatorConfiguration, wrong: frozenset[str] = frozenset()) -> Iterator[str]:
    """Every problem of a decoded configuration, as `key: why`. Keys in `wrong` have their defaults, which the
    others were not written to go with: they are not compared."""
    plain = OperatorConfiguration()
    if (config.api_version, config.kind) != (plain.api_version, plain.kind):
        yield f"kind: must be {plain.kind} of {plain.api_version}, not {config.kind} of {config.api_version}"
    if config.runtime_client_connection.burst < 0:
        yield "runtimeClientConnection.burst: must not be negative"
    if config.leader_election.enabled:
        yield from _election_problems(config.leader_election, wrong)
    yield from _port_problems(config)
    for field in msgspec.structs.fields(config.controllers):
        if getattr(config.controllers, field.name).concurrent_syncs <= 0:
            yield f"controllers.{field.encode_name}.concurrentSyncs: must be greater than 0"
    yield from _scheduler_problems(config.scheduler, wrong)
    yield from namespace_problems(config)
    if config.limits.pods_per_set < 1:
        yield f"limits.podsPerSet: must be at least 1, not {config.limits.pods_per_set}"


def _election_problems(election: LeaderElection, wrong: frozenset[str]) -> Iterator[str]:
    read: dict[str, timedelta] = {}
    for key, text in (
        ("leaseDuration", election.lease_duration),
        ("renewDeadline", election.renew_deadline),
        ("retryPeriod", election.retry_period),
    ):
        if problem := _duration_problem(text):
            yield f"leaderElection.{key}: {problem}"
        elif f"leaderElection.{key}" not in wrong:
            read[key] = durations.parse(text)
    for longer, shorter in (("leaseDuration", "renewDeadline"), ("renewDeadline", "retryPeriod")):
        if read.get(longer, timedelta.max) <= read.get(shorter, timedelta.min):
            yield f"leaderElection.{longer}: must be greater than {shorter}"
    if election.resource_lock != "leases":
        yield f"leaderElection.resourceLock: must be leases, not {election.resource_lock or 'empty'}"
    if not election.resource_name:
        yield "leaderElection.resourceName: must be set"


def _duration_problem(text: str) -> str:
    """What is wrong with a duration, which must be greater than 0; empty if nothing is."""
    try:
        return "" if durations.parse(text) > timedelta() else "must be greater than 0"
    except ValueError as error:
        return str(error)


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


def _scheduler_problems(scheduler: Scheduler, wrong: frozenset[str]) -> Iterator[str]:
    """Problems of the profiles. That each backend exists is checked by `grove.schedulers.registry`."""
    names = [profile.name for profile in scheduler.enabled_profiles]
    for index, name in enumerate(names):
        if not name:
            yield f"scheduler.profiles[{index}].name: must be set"
        elif name in names[:index]:
            yield f"scheduler.profiles[{index}].name: {name} is listed twice"
    listed = not any(path.startswith("scheduler.") for path in wrong)
    if listed and scheduler.default_profile_name not in names:
        yield f"scheduler.defaultProfileName: {scheduler.default_profile_name} is not one of the profiles"


def _default_scheduler_problems(config: DefaultSchedulerConfig) -> Iterator[str]:
    if wrong := _duration_problem(config.hold_after):
        yield f"holdAfter: {wrong}"
    if config.visible_after != NEVER and (wrong := _duration_problem(config.visible_after)):
        yield f"visibleAfter: {wrong}, or use {NEVER}"
    for key, text in (("namespace", config.scheduler_lease.namespace), ("name", config.scheduler_lease.name)):
        if not text:
            yield f"schedulerLease.{key}: must be set"
