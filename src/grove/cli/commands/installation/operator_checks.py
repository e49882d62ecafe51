"""Checks of the API server and of the operator: whether it runs and leads, and its version. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from grove.cli.commands.installation.check_model import Check, fail, ok, unknown, warn
from grove.cli.commands.installation.facts import Installation, OperatorDeployment, Unreadable
from grove.local.build.versions import KUBERNETES
from grove.views.operator_view import operator_line, operator_view

_MINOR = re.compile(r"v?(\d+)\.(\d+)")
_INSTALL = "install or repair the chart: docs/install.md"


def operator_checks(found: Installation, lease: str) -> Iterator[Check]:
    """The checks of the API server and of the operator."""
    yield _server(found)
    yield _leading(found, lease)
    yield _running(found)
    yield from _admission(found)
    yield _skew(found)


def _server(found: Installation) -> Check:
    name, version = "API server", found.server_version
    minor = _minor(version)
    if minor is None:
        return unknown(name, f"{found.server} reports no version of Kubernetes")
    oldest, newest = (_minor(each) or (0, 0) for each in (list(KUBERNETES)[-1], next(iter(KUBERNETES))))
    if minor < oldest:
        needed = ".".join(map(str, oldest))
        return fail(name, f"Kubernetes {version} is not supported", f"upgrade to {needed} or later")
    if minor > newest:
        tested = ".".join(map(str, newest))
        return warn(name, f"Kubernetes {version} is newer than {tested}, the latest that was tested",
                    "look for a newer release of grove")  # fmt: skip
    return ok(name, f"Kubernetes {version} is supported")


def _minor(version: str) -> tuple[int, int] | None:
    numbers = _MINOR.match(version)
    return (int(numbers[1]), int(numbers[2])) if numbers else None


def _leading(found: Installation, lease: str) -> Check:
    name = "operator leads"
    if isinstance(found.leases, Unreadable):
        return unknown(name, found.leases)
    view = operator_view(found.leases, found.now)
    line = operator_line(view, lease).removeprefix("operator: ")
    if view.alive:
        return ok(name, line)
    ready = not isinstance(found.deployments, Unreadable) and any(map(_is_ready_operator, found.deployments))
    if not view.lease and ready:
        return warn(name, line, "name its Lease with --lease, if leader election is enabled")
    return fail(name, line, f"read its log with grove diagnostics; {_INSTALL}")


def _running(found: Installation) -> Check:
    name = "operator pods"
    if isinstance(found.deployments, Unreadable):
        return unknown(name, found.deployments)
    operators = [each for each in found.deployments if not each.is_admission]
    if not operators:
        if not isinstance(found.leases, Unreadable) and operator_view(found.leases, found.now).alive:
            return ok(name, "there is no Deployment of the chart: the operator runs outside of the cluster")
        return fail(name, "there is no Deployment of the chart", _INSTALL)
    if len(operators) > 1:
        places = ", ".join(sorted(each.metadata.namespace for each in operators))
        return fail(name, f"Grove is installed more than once, in {places}", "uninstall all but one")
    return _pods(name, operators[0])


def _admission(found: Installation) -> Iterator[Check]:
    """The pods of the webhooks, where they are not those of the operator."""
    deployments = () if isinstance(found.deployments, Unreadable) else found.deployments
    for each in deployments:
        if each.is_admission:
            yield _pods("webhook pods", each)


def _pods(name: str, each: OperatorDeployment) -> Check:
    place, ready = f"Deployment {each.metadata.namespace}/{each.metadata.name}", each.status.ready_replicas
    counts = f"{place}: {ready} of {each.spec.replicas} pods are ready"
    if not ready:
        remedy = (
            f"kubectl -n {each.metadata.namespace} describe pods -l app.kubernetes.io/name=grove-operator"
        )
        return fail(name, counts, remedy)
    if ready < each.spec.replicas:
        return warn(name, counts, f"kubectl -n {each.metadata.namespace} get pods")
    return ok(name, counts)


def _is_ready_operator(each: OperatorDeployment) -> bool:
    return each.status.ready_replicas > 0 and not each.is_admission


def _skew(found: Installation) -> Check:
    name, own = "versions", found.version
    if isinstance(found.deployments, Unreadable):
        return unknown(name, found.deployments)
    operators = [each for each in found.deployments if not each.is_admission]
    if not operators:
        return unknown(name, f"grove is {own}; there is no Deployment of the chart that has a version")
    each = operators[0]
    image = each.container.image
    tag = image.rpartition("/")[2].partition("@")[0].partition(":")[2]
    version = tag or each.metadata.labels.get("app.kubernetes.io/version", "")
    if not version:
        return unknown(name, f"grove is {own}; image {image} has no tag, and the Deployment no version")
    if version.removeprefix("v") == own:
        return ok(name, f"grove and the operator are {own}")
    return warn(
        name, f"grove is {own}, the operator {version}", "use the version of grove that the operator has"
    )
