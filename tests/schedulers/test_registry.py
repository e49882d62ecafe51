"""The scheduler backends that a configuration lists, and problems of the configuration."""

from __future__ import annotations

import pytest

from grove.api.configuration.default_scheduler import PlacementMode, PlacementSettings, SchedulerLease
from grove.api.configuration.loading import ConfigurationError
from grove.api.configuration.types import Scheduler, SchedulerProfile
from grove.schedulers.backend import PodAdditions, SchedulerBackend, SchedulingSpec, UnsupportedGang
from grove.schedulers.kube_podgroups import V1Alpha2, V1Beta1
from grove.schedulers.lpx import Lpx
from grove.schedulers.registry import backends
from tests.schedulers.builders import a_body, a_request


def profiles(*names: str, default: str = "default-scheduler", **config: object) -> Scheduler:
    return Scheduler(tuple(SchedulerProfile(name, dict(config)) for name in names), default)


def test_default_scheduler_and_listed_backends_are_in_use():
    alone = backends(profiles())
    assert list(alone.by_name) == ["default-scheduler"]
    assert alone.of("").name == "default-scheduler"
    assert alone.of("kai-scheduler") is None
    assert alone.topology_aware == ()
    every = backends(profiles("volcano", "lpx-scheduler", "kai-scheduler", default="kai-scheduler"))
    assert sorted(every.by_name) == ["default-scheduler", "kai-scheduler", "lpx-scheduler", "volcano"]
    assert all(backend.name == name for name, backend in every.by_name.items())
    assert every.of("").name == "kai-scheduler"
    assert [backend.name for backend, _ in every.topology_aware] == ["kai-scheduler"]


def test_profile_enables_gang_scheduling():
    assert backends(profiles("default-scheduler")).of("").gang_object_kind is None
    enabled = backends(profiles("default-scheduler", gangScheduling=True))
    assert enabled.of("").gang_object_kind == V1Beta1.kind
    assert enabled.gang_object_kinds == (V1Beta1.kind, V1Alpha2.kind)


def test_all_problems_are_reported_at_once():
    chosen = Scheduler(
        (SchedulerProfile("absent"), SchedulerProfile("default-scheduler", {"gangScheduling": "yes"}))
    )
    with pytest.raises(ConfigurationError) as wrong:
        backends(chosen)
    unknown, malformed = wrong.value.problems
    assert unknown.startswith(
        "scheduler.profiles[0].name: no scheduler backend absent: use one of default-scheduler, "
    )
    assert malformed == 'scheduler.profiles[1].config.gangScheduling: must be true or false, not "yes"'


def test_profile_sets_placement_of_gangs():
    given = {"placement": "Constrained", "holdAfter": "5s", "visibleAfter": "Never"}
    backend = backends(profiles("default-scheduler", **given)).of("")
    lease = SchedulerLease("kube-system", "kube-scheduler")
    assert backend.placement == PlacementSettings(PlacementMode.CONSTRAINED, 5.0, None, lease)
    assert backend.tries_fallbacks


def test_invalid_config_of_external_backend_affects_only_it():
    def broken(_: object) -> Lpx:
        raise ConfigurationError(("queue: must be set",))

    found = backends(profiles("external"), {"external": broken})
    why = "scheduler backend external cannot be used: ConfigurationError: queue: must be set"
    assert list(found.of("external").unschedulable_reasons(a_request(a_body("a")).scheduling_spec)) == [why]


def test_failing_external_backend_affects_only_its_sets():
    def broken(_: object) -> Lpx:
        raise RuntimeError("no licence")

    found = backends(
        profiles("external", "failing"), {"external": lambda _: Lpx(), "failing": broken, "unused": broken}
    )
    assert sorted(found.by_name) == ["default-scheduler", "external", "failing"]
    request = a_request(a_body("a"))
    why = "scheduler backend failing cannot be used: RuntimeError: no licence"
    with pytest.raises(UnsupportedGang, match=why):
        found.of("failing").gang_object(request)
    assert list(found.of("failing").unschedulable_reasons(request.scheduling_spec)) == [why]


def test_backend_that_is_no_subclass_is_unavailable():
    """It was written for another version: only the sets that use it wait."""

    class Foreign:
        name = "external"

    found = backends(profiles("external"), {"external": lambda _: Foreign()})
    why = "Foreign, which is no subclass of grove.schedulers.backend.SchedulerBackend: update the package"
    with pytest.raises(UnsupportedGang, match=why):
        found.of("external").gang_object(a_request(a_body("a")))


def test_incomplete_backend_affects_only_its_sets():
    found = backends(profiles("external"), {"external": lambda _: SchedulerBackend()})
    (why,) = found.of("external").unschedulable_reasons(a_request(a_body("a")).scheduling_spec)
    assert "unsupported_constraints" in why


def test_defaults_of_a_backend_need_nothing():
    class Plain(SchedulerBackend):
        name = "plain"

        def unsupported_constraints(self, scheduling_spec: SchedulingSpec) -> tuple[str, ...]:
            return ()

    plain, request = Plain(), a_request(a_body("a"))
    in_use = backends(profiles("plain"), {"plain": lambda _: plain})
    assert (in_use.gang_object_kinds, in_use.versioned_kinds, in_use.topology_aware) == ((), (), ())
    assert plain.gang_object_name(request) == request.gang["metadata"]["name"]
    assert plain.gang_object(request) is None
    assert plain.can_join_group(request.gang, "wl-0", [None])
    assert plain.pod_additions(request.gang, "a", "wl-0") == PodAdditions()
    assert not plain.gang_annotations
    assert not list(plain.unschedulable_reasons(request.scheduling_spec))
    assert not list(plain.lookups(request.scheduling_spec))


def test_gang_object_kinds_are_those_of_backends_in_use():
    assert backends(profiles()).gang_object_kinds == ()
    both = backends(profiles("kai-scheduler", "volcano"))
    assert [kind.group for kind in both.gang_object_kinds] == ["scheduling.run.ai", "scheduling.volcano.sh"]


def test_backend_without_topology_methods_says_what_is_missing():
    """It has a topology kind: the status of each topology reports that its package is incomplete."""
    backend = Lpx()
    for method, sync in (
        ("sync_topology", backend.sync_topology(None, None)),
        ("check_topology_drift", backend.check_topology_drift(None, "racks", None)),
    ):
        assert (sync.in_sync, sync.failed, sync.intents) == (False, True, ())
        assert sync.message.endswith(f"has a topology_kind and no {method}: update its package")
