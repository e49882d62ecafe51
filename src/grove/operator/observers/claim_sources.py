"""Reads what the claims of a set's pods refer to, for the placement of its gangs. Devices and volumes are
watched from the first set on whose pods have claims on them."""

from __future__ import annotations

from collections.abc import Iterator

from grove.api.types.podcliqueset import PodCliqueSet
from grove.fabrics.resolved import ReplicaDomains
from grove.operator.caches.registry import Caches
from grove.operator.caches.volumes import Volumes
from grove.operator.observers.cluster.cluster_view import ClusterView
from grove.plan.desired.pod_claims import PodClaims, claims_of_set
from grove.plan.desired.resource_sharing import has_shared_claims
from grove.plan.desired.shared_claims import decoded_spec
from grove.plan.placement.needs import ClaimSources


class ClaimSourcesObserver:
    """Device classes, claim templates and volumes."""

    def __init__(self, caches: Caches, view: ClusterView, volumes: Volumes) -> None:
        self._caches, self._view, self._volumes = caches, view, volumes

    def of(self, workload: PodCliqueSet, domains: ReplicaDomains) -> ClaimSources:
        """What the claims of a set's pods refer to, also those by which they join fabric domains."""
        claims, namespace = claims_of_set(workload), workload.metadata.namespace
        requested = self._view.requests_devices(claims)
        on_devices = requested or bool(domains) or claims_devices(workload, claims)
        volumes = {name for each in claims for name in each.volumes}
        storage_classes = {name for each in claims for _, name in each.ephemeral}
        if on_devices:
            self._view.require_devices()
        if volumes or storage_classes:
            self._volumes.require()
        templates = {name for each in claims for name in each.templates} | set(_domain_templates(domains))
        found = {name: self._caches.claim_templates.get(namespace, name) for name in templates}
        known = {name: self._volumes.known(namespace, name) for name in volumes}
        return ClaimSources(
            self._view.device_catalog if on_devices else None,
            {name: decoded_spec(bytes(each.spec.spec)) for name, each in found.items() if each is not None}
            if self._caches.claim_templates.synced_or_absent.is_set()
            else None,
            {name: each for name, each in known.items() if each is not None}
            if self._volumes.listed
            else None,
            {name: self._volumes.nodes_of_class(name) for name in storage_classes},
            self._problem(on_devices, bool(volumes)),
            requested,
            self._delay(on_devices, bool(volumes)),
            self._existing(namespace, frozenset(name for each in claims for name in each.named)),
        )

    def _existing(self, namespace: str, named: frozenset[str]) -> frozenset[str] | None:
        """The ResourceClaims of these that exist; None if that is not known."""
        devices = self._caches.devices
        if not named or devices is None or not devices.claims.synced.is_set():
            return None
        return frozenset(name for name in named if devices.claims.get(namespace, name) is not None)

    def _problem(self, on_devices: bool, on_volumes: bool) -> str:
        if on_devices and (problem := self._view.device_problem):
            return problem
        return f"volumes: {self._volumes.problem}" if on_volumes and self._volumes.is_forbidden else ""

    def _delay(self, on_devices: bool, on_volumes: bool) -> str:
        """Why something is not listed yet, as far as it is known."""
        if on_devices and self._view.device_catalog is None and (delay := self._view.delay):
            return delay
        reason = self._volumes.problem if on_volumes and not self._volumes.listed else ""
        return f"volumes: {reason}" if reason else ""


def claims_devices(workload: PodCliqueSet, claims: tuple[PodClaims, ...]) -> bool:
    """Whether pods of a set have claims on devices by their templates, or share some."""
    return has_shared_claims(workload.spec.template) or any(each.devices for each in claims)


def _domain_templates(domains: ReplicaDomains) -> Iterator[str]:
    for by_replica in domains.values():
        for joined in by_replica.values():
            yield from (domain.template for domain in joined)
