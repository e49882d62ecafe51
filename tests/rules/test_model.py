"""`Facts` from a configuration, and the text of verdicts."""

from __future__ import annotations

from msgspec.structs import replace

from grove.api.configuration.types import (
    Authorizer,
    Network,
    OperatorConfiguration,
    Scheduler,
    SchedulerProfile,
    TopologyAwareScheduling,
)
from grove.api.field_errors import required
from grove.rules.model import AdmissionResult, Facts
from grove.schedulers.registry import backends

BACKENDS = backends(Scheduler())


def test_facts_are_taken_from_the_configuration():
    plain = Facts.of(OperatorConfiguration())
    assert (plain.schedulers, plain.backends.default_name) == (("default-scheduler",), "default-scheduler")
    assert replace(plain, backends=BACKENDS) == Facts(backends=BACKENDS)
    config = OperatorConfiguration(
        scheduler=Scheduler((SchedulerProfile("kai-scheduler"),), default_profile_name="kai-scheduler"),
        topology_aware_scheduling=TopologyAwareScheduling(enabled=True),
        network=Network(auto_mnnvl_enabled=True),
        authorizer=Authorizer(enabled=True, exempt_service_account_user_names=("jane",)),
    )
    facts = Facts.of(config, {"h100": ("rack",)}, "me")
    assert facts.schedulers == ("kai-scheduler", "default-scheduler")
    assert facts.backends.default_name == "kai-scheduler"
    assert Facts.of(config, {"h100": ("rack",)}, "me", BACKENDS) == Facts(
        backends=BACKENDS,
        topology_aware=True,
        topologies={"h100": ("rack",)},
        network=Network(auto_mnnvl_enabled=True),
        operator_user="me",
        exempt_users=("jane",),
    )


def test_verdict_message_joins_errors_without_duplicates():
    one, other = required("a"), required("b")
    assert AdmissionResult().message == ""
    assert AdmissionResult((one,)).message == "a: Required value"
    assert AdmissionResult((one, one)).message == "a: Required value"
    assert AdmissionResult((one, other, one)).message == "[a: Required value, b: Required value]"
