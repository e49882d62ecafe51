"""Checks of schedulers, feature gates and the driver that the configuration of the operator needs. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from grove.api.configuration.types import OperatorConfiguration, SchedulerProfile
from grove.api.types.kind import ForeignKind
from grove.cli.commands.installation.check_model import Check, fail, ok, unknown, warn
from grove.cli.commands.installation.facts import Installation, Unreadable
from grove.fabrics.nvidia import COMPUTE_DOMAIN
from grove.schedulers import kai, kube, kube_podgroups, volcano

Served = Mapping[str, tuple[str, ...]]
_KINDS: Mapping[str, ForeignKind] = {kai.NAME: kai.POD_GROUP, volcano.NAME: volcano.POD_GROUP}
_DEVICES = "resource.k8s.io"
_TO_ZERO = "HPAScaleToZero"


def cluster_checks(found: Installation) -> Iterator[Check]:
    """The checks of what the cluster has."""
    yield _schedulers(found)
    yield _gates(found)
    yield _driver(found)


def _schedulers(found: Installation) -> Check:
    name, served = "schedulers", found.served
    if isinstance(served, Unreadable):
        return unknown(name, served)
    present = [each for each, kind in _KINDS.items() if _serves(served, kind)]
    installed = f"; installed: {', '.join(present)}" if present else ""
    if isinstance(found.configuration, Unreadable):
        return unknown(name, f"the configuration: {found.configuration.reason}{installed}")
    profiles = found.configuration.scheduler.profiles or (SchedulerProfile(kube.NAME),)
    listed = [each.name for each in profiles]
    missing = [each for each in listed if each in _KINDS and each not in present]
    if missing:
        kinds = ", ".join(f"{_KINDS[each].plural}.{_KINDS[each].group}" for each in missing)
        return fail(name, f"configured and not installed: {', '.join(missing)} ({kinds})",
                    "install it, or remove it from scheduler.profiles")  # fmt: skip
    if _wants_pod_groups(found.configuration) and not _serves_pod_groups(served):
        return fail(name, "gangScheduling needs PodGroups of Kubernetes, which are not served",
                    "enable the feature gate GenericWorkload and the API scheduling.k8s.io")  # fmt: skip
    others = [each for each in present if each not in listed]
    unused = f"; installed and not configured: {', '.join(others)}" if others else ""
    return ok(name, f"configured: {', '.join(listed)}{unused}")


def _serves(served: Served, kind: ForeignKind) -> bool:
    return kind.version in served.get(kind.group, ())


def _wants_pod_groups(configuration: OperatorConfiguration) -> bool:
    return any(bool((each.config or {}).get("gangScheduling")) for each in configuration.scheduler.profiles)


def _serves_pod_groups(served: Served) -> bool:
    known = (kube_podgroups.V1Alpha2.kind, kube_podgroups.V1Beta1.kind)
    return any(_serves(served, kind) for kind in known)


def _gates(found: Installation) -> Check:
    name = "feature gates"
    if isinstance(found.gates, Unreadable):
        return unknown(name, found.gates)
    if not found.gates:
        return unknown(name, "the API server reports none")
    on = found.gates.get(_TO_ZERO)
    if on is False:
        return ok(name, f"{_TO_ZERO} is off: minReplicas: 0 of autoscalers is refused")
    return ok(name, f"{_TO_ZERO} is on: autoscalers may scale to 0")


def _driver(found: Installation) -> Check:
    name, served, configured = "NVIDIA driver", found.served, found.configuration
    if isinstance(served, Unreadable):
        return unknown(name, served)
    automatic = not isinstance(configured, Unreadable) and configured.network.auto_mnnvl_enabled
    domains, devices = served.get(COMPUTE_DOMAIN.group, ()), served.get(_DEVICES, ())
    if not domains:
        if automatic:
            return fail(name, f"autoMNNVLEnabled needs {COMPUTE_DOMAIN.crd_name}, which is not installed",
                        "install NVIDIA's DRA driver, or switch autoMNNVLEnabled off")  # fmt: skip
        return ok(name, "not installed: only NVLink domains need it")
    if COMPUTE_DOMAIN.version not in domains:
        wanted = f"{COMPUTE_DOMAIN.group}/{COMPUTE_DOMAIN.version}"
        return warn(name, f"{wanted} is not served, only {', '.join(domains)}",
                    "install a version of the driver that serves it")  # fmt: skip
    if "v1" not in devices:
        return fail(name, f"{_DEVICES}/v1 is not served: pods get no channels", "upgrade Kubernetes")
    return ok(name, f"installed, and {_DEVICES}/v1 is served")
