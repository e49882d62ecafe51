"""Plans one fabric domain: created when a set needs it, shared by the sets that name it, deleted after their
pods.

    needed:      missing -> created        managed -> labels, owners and finalizer repaired
    not needed:  pods gone -> the operator's finalizer removed -> deleted

Whether it is needed follows from the sets, never from its owner references: those only mirror it, for users
and for the garbage collector. A domain that a user deletes stays terminating, held by the operator's
finalizer, until no set needs it: the driver has dismantled it by then, and one created in its place would be
another domain, of which running pods have no claims. `grove.plan.fabric.recreation` restarts them on request.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from grove.api.event_reasons import EventReason
from grove.api.intents import Intent, Patch
from grove.api.meta import ObjectMeta
from grove.api.naming import labels, well_known
from grove.api.types.podcliqueset import PodCliqueSet
from grove.fabrics.provider import Domain, DomainRequest, Scope
from grove.fabrics.requirements import Mode
from grove.fabrics.resolved import DomainReport, DomainState
from grove.plan.desired import objects
from grove.plan.fabric.channels import busy_channels_message
from grove.plan.fabric.events import (
    conflict_events,
    domain_event,
    failure_events,
    foreign_domain_events,
    joining_events,
    split_fabric_events,
    warning_events,
)
from grove.plan.fabric.model import DomainConsumer, DomainSnapshot
from grove.plan.fabric.problems import found_problems, next_check
from grove.plan.fabric.recreation import is_to_be_recreated, plan_restart
from grove.plan.fabric.state import is_managed, mode_of, state_message
from grove.plan.members.pod_state import controller_uid
from grove.plan.model import Plan
from grove.plan.timestamps import earliest
from grove.plan.writes.builders import confirm, create, delete_of_kind, target_of_kind

Body = dict[str, Any]


def plan_domain(snapshot: DomainSnapshot, now: float) -> Plan:
    """Returns the next step for a fabric domain. It reports a `DomainReport` to the sets that require it."""
    plan, (message, check_at) = _step(snapshot), busy_channels_message(snapshot, now)
    problems, due = _due_problems(snapshot, now)
    waiting = _in_priority_order(snapshot.consumers) if message else ()
    busy = warning_events(snapshot, waiting, EventReason.IMEX_CHANNEL_BUSY, message)
    failures = (event for intent in plan.intents for event in failure_events(snapshot, intent))
    return replace(
        plan,
        events=(*plan.events, *failures, *busy),
        requeue_at=earliest(check_at, due),
        report=DomainReport(busy=message, problems=problems),
    )


def _due_problems(snapshot: DomainSnapshot, now: float) -> tuple[tuple[tuple[str, str], ...], float | None]:
    """The reasons and messages of all problems of the domain, and when the next one may begin or end without
    an event."""
    if snapshot.found is None:
        return (), None
    lacks_template = any(each.state is DomainState.TEMPLATE_MISSING for each in snapshot.consumers)
    found = found_problems(snapshot.provider, snapshot.found, snapshot.pods, now, lacks_template)
    problems = tuple((each.reason.value, each.message) for each in found)
    return problems, next_check(snapshot.found, snapshot.pods, now, lacks_template)


def _step(snapshot: DomainSnapshot) -> Plan:
    consumers, found = _in_priority_order(snapshot.consumers), snapshot.found
    if found is None:
        return _plan_creation(snapshot, consumers) if consumers else Plan()
    if not is_managed(found):
        return Plan(events=foreign_domain_events(snapshot, found, consumers))
    entitled = [consumer for consumer in consumers if _may_use(found, consumer)]
    if found.metadata.deletion_timestamp is not None:
        return _plan_terminating(snapshot, found, consumers, entitled)
    events = conflict_events(snapshot, found, consumers)
    if not entitled:
        deletion = _plan_deletion(snapshot, found)
        return replace(deletion, events=(*events, *deletion.events))
    writes = _plan_repair(snapshot, found, entitled)
    joined = joining_events(snapshot, found, entitled, writes[-1].id) if writes else ()
    return Plan(writes, events=(*events, *joined, *split_fabric_events(snapshot, found, entitled)))


def _in_priority_order(consumers: tuple[DomainConsumer, ...]) -> list[DomainConsumer]:
    """Sorts consumers: a domain for one set alone comes before one that is shared."""
    return sorted(
        consumers,
        key=lambda consumer: (consumer.membership.requirement.mode, consumer.workload.metadata.name),
    )


def _may_use(found: Domain, consumer: DomainConsumer) -> bool:
    """Whether a managed domain is, or can become, this set's."""
    mode, meta = consumer.membership.requirement.mode, found.metadata
    if mode_of(found) != mode:
        return False
    if mode is Mode.EXPLICIT:
        return meta.deletion_timestamp is None or consumer.workload.metadata.uid in _owners(meta)
    controller = controller_uid(meta)
    if controller:
        return controller == consumer.workload.metadata.uid
    return meta.labels.get(labels.PART_OF) == consumer.workload.metadata.name


def _owners(meta: ObjectMeta) -> set[str]:
    return {owner.uid for owner in meta.owner_references}


# Creation.


def _plan_creation(snapshot: DomainSnapshot, consumers: list[DomainConsumer]) -> Plan:
    first_consumers = _first_consumers(consumers)
    intent = create(_body(snapshot, first_consumers))
    kind, name = snapshot.provider.api.name, snapshot.name
    again = f"{kind} {name} was created again: its pods still use claims of the former one, restart them"
    notes = [(f"{kind} {name} created", False), *([(again, True)] if snapshot.in_use else [])]
    reason = EventReason.COMPUTE_DOMAIN_CREATED
    events = tuple(
        domain_event(snapshot, consumer.workload, reason, note, warning=warning, intent=intent.id)
        for note, warning in notes
        for consumer in first_consumers
    )
    return Plan((intent,), events=events)


def _first_consumers(consumers: list[DomainConsumer]) -> list[DomainConsumer]:
    """The consumers that get the domain: a single one, or all that name it."""
    if consumers[0].membership.requirement.mode is Mode.AUTO:
        return consumers[:1]
    return consumers


def _body(snapshot: DomainSnapshot, consumers: list[DomainConsumer]) -> Body:
    request = DomainRequest(
        snapshot.name,
        snapshot.namespace,
        _labels(snapshot.name, consumers[0], consumers[0].workload.metadata.name),
        tuple(_owner(consumer) for consumer in consumers),
        (well_known.COMPUTE_DOMAIN_FINALIZER,),
        dict(consumers[0].membership.requirement.options),
    )
    return snapshot.provider.build_domain(request)


def _labels(name: str, consumer: DomainConsumer, part_of: str) -> labels.Labels:
    requirement, component = consumer.membership.requirement, labels.ComponentLabel.COMPUTE_DOMAIN
    object_labels = labels.named(part_of, name, component) | {
        labels.COMPUTE_DOMAIN_MODE: requirement.mode.value
    }
    if requirement.scope is not Scope.SHARED:
        object_labels[labels.SET_REPLICA] = str(consumer.membership.replicas[0])
    if requirement.group:
        object_labels[labels.MNNVL_GROUP] = requirement.group
    return object_labels


def _owner(consumer: DomainConsumer) -> Body:
    """The owner reference to a set: the controller if the domain is for one set alone, not if sets share
    it."""
    (owner,) = objects.set_owner_reference(consumer.workload)
    if consumer.membership.requirement.mode is Mode.AUTO:
        return owner
    return {key: value for key, value in owner.items() if key not in ("controller", "blockOwnerDeletion")}


# Repair.


def _plan_repair(
    snapshot: DomainSnapshot, found: Domain, consumers: list[DomainConsumer]
) -> tuple[Intent, ...]:
    meta = found.metadata
    names = [consumer.workload.metadata.name for consumer in consumers]
    part_of = meta.labels.get(labels.PART_OF, "")
    primary = consumers[names.index(part_of)] if part_of in names else consumers[0]
    wanted = _labels(snapshot.name, primary, primary.workload.metadata.name)
    changes: Body = {}
    if changed := {key: value for key, value in wanted.items() if meta.labels.get(key) != value}:
        changes["labels"] = changed
    if well_known.COMPUTE_DOMAIN_FINALIZER not in meta.finalizers:
        changes["finalizers"] = [*meta.finalizers, well_known.COMPUTE_DOMAIN_FINALIZER]
    fences: list[Patch] = []
    if (owners := _desired_owners(found, consumers)) is not None:
        changes["ownerReferences"] = owners
        fences = [
            confirm(consumer.workload)
            for consumer in consumers
            if consumer.workload.metadata.uid not in _owners(meta)
        ]
    if not changes:
        return ()
    patch = _change(snapshot, found, changes)
    return (*fences, replace(patch, after=tuple(fence.id for fence in fences)))


def _desired_owners(found: Domain, consumers: list[DomainConsumer]) -> list[Body] | None:
    """The desired owners: the sets that need it, and owners that are not sets; None: no change."""
    known, kind = found.metadata.owner_references, PodCliqueSet.KIND.name
    wanted = {consumer.workload.metadata.uid: consumer for consumer in consumers}
    kept = [owner for owner in known if owner.kind != kind or owner.uid in wanted]
    new = [consumer for uid, consumer in wanted.items() if uid not in _owners(found.metadata)]
    if len(kept) == len(known) and not new:
        return None
    return [*objects.to_builtins(kept), *(_owner(consumer) for consumer in new)]


# Deletion.


def _plan_deletion(snapshot: DomainSnapshot, found: Domain) -> Plan:
    """Deletes a domain that no set needs: after its pods are gone, and after confirming the counts that say
    so. A domain with an unknown owner set may be needed by it: if that set is deleted, the garbage collector
    deletes the domain."""
    if snapshot.in_use or snapshot.unknown_owner:
        return Plan()
    kind = snapshot.provider.api
    fences = [*map(confirm, snapshot.former_owners), *map(confirm, snapshot.counts)]
    after = tuple(fence.id for fence in fences)
    writes: list[Intent] = [*fences]
    if well_known.COMPUTE_DOMAIN_FINALIZER in found.metadata.finalizers:
        finalizer_removal = replace(_remove_finalizer(snapshot, found), after=after)
        writes.append(finalizer_removal)
        after = (finalizer_removal.id,)
    deletion = delete_of_kind(kind.api_version, kind.name, found, after)
    note = f"{kind.name} {snapshot.name} deleted"
    events = tuple(
        domain_event(snapshot, workload, EventReason.COMPUTE_DOMAIN_DELETED, note, intent=deletion.id)
        for workload in snapshot.former_owners
    )
    return Plan((*writes, deletion), events=events)


def _plan_terminating(
    snapshot: DomainSnapshot, found: Domain, consumers: list[DomainConsumer], entitled: list[DomainConsumer]
) -> Plan:
    """Handles a domain that a user deleted: its finalizer is removed when no entitled set needs it any more,
    or when its pods are gone and it is to be created again."""
    recreated = is_to_be_recreated(found)
    if (recreated or not entitled) and not snapshot.in_use:
        has_finalizer = well_known.COMPUTE_DOMAIN_FINALIZER in found.metadata.finalizers
        return Plan((_remove_finalizer(snapshot, found),) if has_finalizer else ())
    if recreated and entitled:
        return plan_restart(snapshot, found, entitled)
    message = state_message(DomainState.TERMINATING, snapshot.provider, snapshot.name, found=found)
    reason = EventReason.COMPUTE_DOMAIN_TERMINATING
    return Plan(events=warning_events(snapshot, consumers, reason, message))


def _remove_finalizer(snapshot: DomainSnapshot, found: Domain) -> Patch:
    kept = [name for name in found.metadata.finalizers if name != well_known.COMPUTE_DOMAIN_FINALIZER]
    return _change(snapshot, found, {"finalizers": kept})


def _change(snapshot: DomainSnapshot, found: Domain, metadata: Body) -> Patch:
    """A patch that fails if the domain has changed since it was observed: finalizers and owners are lists,
    and the driver writes them as well."""
    kind = snapshot.provider.api
    version = {"resourceVersion": found.metadata.resource_version}
    return Patch(target_of_kind(kind.api_version, kind.name, found), {"metadata": {**version, **metadata}})
