"""Reading the operator's configuration, and what would keep the operator from starting with it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import msgspec

from grove.api import durations
from grove.api.config import LeaderElection, OperatorConfiguration, Scheduler


class ConfigurationError(ValueError):
    """The configuration cannot be used; the message names every key that is wrong."""


def load(document: object) -> OperatorConfiguration:
    """The configuration in a parsed YAML or JSON document; an empty one means all defaults."""
    try:
        config = msgspec.convert({} if document is None else document, type=OperatorConfiguration)
    except msgspec.ValidationError as error:
        raise ConfigurationError(str(error)) from error
    if wrong := list(problems(config)):
        raise ConfigurationError("; ".join(wrong))
    return config


def problems(config: OperatorConfiguration) -> Iterator[str]:
    """Every value that cannot be used, as `key: why`."""
    plain = OperatorConfiguration()
    if (config.api_version, config.kind) != (plain.api_version, plain.kind):
        yield f"kind: must be {plain.kind} of {plain.api_version}, not {config.kind} of {config.api_version}"
    if config.runtime_client_connection.burst < 0:
        yield "runtimeClientConnection.burst: must not be negative"
    if config.leader_election.enabled:
        yield from _of_election(config.leader_election)
    for field in msgspec.structs.fields(config.controllers):
        if getattr(config.controllers, field.name).concurrent_syncs <= 0:
            yield f"controllers.{field.encode_name}.concurrentSyncs: must be greater than 0"
    yield from _of_scheduler(config.scheduler)


def _of_election(election: LeaderElection) -> Iterator[str]:
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
    if read.get("leaseDuration", timedelta.max) <= read.get("renewDeadline", timedelta.min):
        yield "leaderElection.leaseDuration: must be greater than renewDeadline"
    for key, text in (("resourceLock", election.resource_lock), ("resourceName", election.resource_name)):
        if not text:
            yield f"leaderElection.{key}: must be set"


def _of_scheduler(scheduler: Scheduler) -> Iterator[str]:
    """Whether a profile's backend exists is for the registry of backends to say."""
    names = [profile.name for profile in scheduler.in_use]
    for index, name in enumerate(names):
        if not name:
            yield f"scheduler.profiles[{index}].name: must be set"
        elif name in names[:index]:
            yield f"scheduler.profiles[{index}].name: {name} is listed twice"
    if scheduler.default_profile_name not in names:
        yield f"scheduler.defaultProfileName: {scheduler.default_profile_name} is not one of the profiles"
