"""The `config` of the scheduler profile `default-scheduler`: defaults, values and problems."""

from __future__ import annotations

import pytest

from grove.api.configuration.default_scheduler import (
    DEFAULT_PLACEMENT,
    DefaultSchedulerConfig,
    PlacementMode,
    SchedulerLease,
)
from grove.api.configuration.loading import ConfigurationError, load_default_scheduler


def test_empty_config_gives_defaults():
    config = load_default_scheduler({})
    assert config == load_default_scheduler({"placement": None}) == DefaultSchedulerConfig()
    settings = config.placement_settings
    assert settings.mode == DEFAULT_PLACEMENT
    assert (settings.hold_after, settings.visible_after) == (60.0, 30.0)
    assert settings.scheduler_lease == SchedulerLease("kube-system", "kube-scheduler")


def test_values_are_read():
    config = load_default_scheduler(
        {
            "gangScheduling": True,
            "placement": "Constrained",
            "holdAfter": "1m30s",
            "visibleAfter": "2.5s",
            "schedulerLease": {"name": "second"},
            "ofALaterVersion": 1,
        }
    )
    settings = config.placement_settings
    assert config.gang_scheduling
    assert settings.mode is PlacementMode.CONSTRAINED
    assert (settings.hold_after, settings.visible_after) == (90.0, 2.5)
    assert settings.scheduler_lease == SchedulerLease("kube-system", "second")


def test_gang_is_never_visible_if_asked_for():
    assert load_default_scheduler({"visibleAfter": "Never"}).placement_settings.visible_after is None


@pytest.mark.parametrize(
    ("written", "enabled"), [("All", True), ("Constrained", True), ("Off", False), (False, False)]
)
def test_placement_is_enabled_unless_off(written, enabled):
    """Helm writes `Off` as false."""
    assert load_default_scheduler({"placement": written}).placement_settings.enabled is enabled


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({"placement": "Some"}, 'placement: must be All or Constrained or Off, not "Some"'),
        ({"placement": True}, "placement: must be All or Constrained or Off, not true"),
        ({"gangScheduling": "yes"}, 'gangScheduling: must be true or false, not "yes"'),
        ({"holdAfter": 60}, "holdAfter: must be text, not 60"),
        ({"holdAfter": "soon"}, 'holdAfter: "soon" is not a duration such as "4h0m0s" or "90s"'),
        ({"holdAfter": "0s"}, "holdAfter: must be greater than 0"),
        ({"holdAfter": "Never"}, 'holdAfter: "Never" is not a duration such as "4h0m0s" or "90s"'),
        ({"visibleAfter": "-1s"}, "visibleAfter: must be greater than 0, or use Never"),
        ({"schedulerLease": "x"}, 'schedulerLease: must be an object, not "x"'),
        ({"schedulerLease": {"name": ""}}, "schedulerLease.name: must be set"),
        ({"schedulerLease": {"namespace": ""}}, "schedulerLease.namespace: must be set"),
    ],
)
def test_invalid_value_is_named(config, problem):
    with pytest.raises(ConfigurationError) as wrong:
        load_default_scheduler(config)
    assert wrong.value.problems == (problem,)


def test_all_problems_are_reported_at_once():
    config = {"placement": 1, "holdAfter": "0s", "schedulerLease": {"name": 2, "namespace": ""}}
    with pytest.raises(ConfigurationError) as wrong:
        load_default_scheduler(config)
    assert [problem.partition(":")[0] for problem in wrong.value.problems] == [
        "placement",
        "schedulerLease.name",
        "holdAfter",
        "schedulerLease.namespace",
    ]
