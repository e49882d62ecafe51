"""`Facts` from a configuration, and the text of field errors and verdicts."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from grove.api.configuration.types import (
    Authorizer,
    Network,
    OperatorConfiguration,
    Scheduler,
    SchedulerProfile,
    TopologyAwareScheduling,
)
from grove.rules.model import (
    AdmissionResult,
    Facts,
    duplicate,
    forbidden,
    invalid,
    not_found,
    required,
    unsupported,
)
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


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (invalid("a.b", "x", "no"), 'a.b: Invalid value: "x": no'),
        (invalid("a.b", ["x", 1], "no"), 'a.b: Invalid value: ["x",1]: no'),
        (invalid("a.b", object(), "no"), "a.b: Invalid value: (object): no"),
        (
            invalid("a" * 300, "x" * 300, "n" * 2000),
            f'{"a" * 200}...: Invalid value: "{"x" * 199}...: {"n" * 1000}...',
        ),
        (required("a.b"), "a.b: Required value"),
        (required("a.b", "say so"), "a.b: Required value: say so"),
        (duplicate("a.b", "x"), 'a.b: Duplicate value: "x"'),
        (forbidden("a.b", "no"), "a.b: Forbidden: no"),
        (not_found("a.b", "x"), 'a.b: Not found: "x"'),
        (unsupported("a", "x", ("y", "z")), 'a: Unsupported value: "x": supported values: "y", "z"'),
    ],
)
def test_field_error_text_matches_kubernetes(error, text):
    assert str(error) == text


def test_verdict_message_joins_errors_without_duplicates():
    one, other = required("a"), required("b")
    assert AdmissionResult().message == ""
    assert AdmissionResult((one,)).message == "a: Required value"
    assert AdmissionResult((one, one)).message == "a: Required value"
    assert AdmissionResult((one, other, one)).message == "[a: Required value, b: Required value]"
