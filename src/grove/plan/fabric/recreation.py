"""Plans the restart of the pods of a domain that a user deleted by hand and wants to be created again.

The driver dismantles a domain as soon as it is being deleted, so its pods have lost their fabric. With the
annotation `grove.io/recreate` on it they are deleted; when they are gone the operator's finalizer is removed,
the domain is created again, and then its pods, as after any loss of pods.
"""

from __future__ import annotations

from collections.abc import Sequence

from grove.api.event_reasons import EventReason
from grove.api.intents import Patch
from grove.api.naming import annotations as keys
from grove.fabrics.provider import Domain
from grove.plan.fabric.events import domain_event
from grove.plan.fabric.model import DomainConsumer, DomainSnapshot
from grove.plan.members.pod_state import terminating
from grove.plan.model import Plan
from grove.plan.writes.builders import delete_pod, target_of_kind


def is_to_be_recreated(domain: Domain) -> bool:
    """Whether a user deleted the domain and asks for another one."""
    meta = domain.metadata
    return meta.deletion_timestamp is not None and meta.annotations.get(keys.RECREATE) == keys.TRUE


def plan_restart(snapshot: DomainSnapshot, found: Domain, consumers: Sequence[DomainConsumer]) -> Plan:
    """Deletes the pods of a domain. First confirms that the domain is still that one: pods of the domain that
    is created in its place claim from a template of the same name."""
    kind, version = snapshot.provider.api, {"resourceVersion": found.metadata.resource_version}
    pods = [pod for pod in snapshot.restarted if not terminating(pod)]
    if not pods:
        return Plan()
    confirmed = Patch(target_of_kind(kind.api_version, kind.name, found), {"metadata": version})
    number = "1 pod" if len(pods) == 1 else f"{len(pods)} pods"
    note = f"{kind.name} {snapshot.name} is created again after its {number} are restarted"
    events = tuple(
        domain_event(snapshot, consumer.workload, EventReason.COMPUTE_DOMAIN_RECREATING, note)
        for consumer in consumers
    )
    return Plan((confirmed, *(delete_pod(pod, (confirmed.id,)) for pod in pods)), events=events)
