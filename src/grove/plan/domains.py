"""One fabric domain: made when somebody needs it, shared by those who name it, gone after their pods.

    somebody needs it:  missing -> made          ours -> labels, owners and finalizer kept
    nobody does:        pods gone -> our finalizer taken off -> deleted

Who needs it follows from the sets, never from the owners that it names: those only mirror it, for people and
for the garbage collector. Deleted by hand it stays, terminating, held by our finalizer until nobody needs it:
the driver has taken it down by then, and what is made in its place would be another domain.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from grove.api import labels, marks
from grove.api.events import EventReason
from grove.api.intents import Delete, Intent, Patch
from grove.api.meta import ObjectMeta
from grove.api.sets import PodCliqueSet
from grove.fabrics.provider import Domain, DomainRequest, Scope
from grove.fabrics.resolve import Mode
from grove.plan import compose
from grove.plan.domain_model import DomainPlan, DomainSnapshot, Remark, User
from grove.plan.domain_news import about_foreign, conflicts, split
from grove.plan.domain_states import State, is_managed, mode_of, trouble
from grove.plan.pods import controller_uid
from grove.plan.seats import busy
from grove.plan.targets import confirm, create, foreign_target

Body = dict[str, Any]


def plan_domain(snapshot: DomainSnapshot, now: float) -> DomainPlan:
    """The next step."""
    plan = _step(snapshot)
    words, wake_at = busy(snapshot, now)
    told = (
        Remark(user.workload, EventReason.IMEX_CHANNEL_BUSY, words, warning=True)
        for user in (_in_order(snapshot.users) if words else ())
    )
    return replace(plan, remarks=(*plan.remarks, *told), wake_at=wake_at)


def _step(snapshot: DomainSnapshot) -> DomainPlan:
    users, found = _in_order(snapshot.users), snapshot.found
    if found is None:
        return _make(snapshot, users) if users else DomainPlan()
    if not is_managed(found):
        return DomainPlan(remarks=about_foreign(snapshot, users))
    rightful = [user for user in users if _may(found, user)]
    if found.metadata.deletion_timestamp is not None:
        return _leaving(snapshot, found, users, rightful)
    remarks = conflicts(snapshot, users)
    if not rightful:
        retired = _retire(snapshot, found)
        return replace(retired, remarks=(*remarks, *retired.remarks))
    return DomainPlan(_mend(snapshot, found, rightful), (*remarks, *split(snapshot, found, rightful)))


def _in_order(users: tuple[User, ...]) -> list[User]:
    """Whose it is first: a domain for one set alone comes before one that is shared."""
    return sorted(users, key=lambda user: (user.stay.demand.mode, user.workload.metadata.name))


def _may(found: Domain, user: User) -> bool:
    """Whether a domain of ours is, or can become, this set's."""
    mode, meta = user.stay.demand.mode, found.metadata
    if mode_of(found) != mode:
        return False
    if mode is Mode.EXPLICIT:
        return meta.deletion_timestamp is None or user.workload.metadata.uid in _owners(meta)
    controller = controller_uid(meta)
    if controller:
        return controller == user.workload.metadata.uid
    return meta.labels.get(labels.PART_OF) == user.workload.metadata.name


def _owners(meta: ObjectMeta) -> set[str]:
    return {owner.uid for owner in meta.owner_references}


# Making.


def _make(snapshot: DomainSnapshot, users: list[User]) -> DomainPlan:
    sharing = _sharing(users)
    made = create(_body(snapshot, sharing))
    kind, name = snapshot.provider.api.name, snapshot.name
    remarks = [
        Remark(user.workload, EventReason.COMPUTE_DOMAIN_CREATED, f"{kind} {name} created", intent=made.id)
        for user in sharing
    ]
    if snapshot.occupied:
        note = f"{kind} {name} was made anew: its pods still claim from the one before, restart them"
        remarks += [
            Remark(user.workload, EventReason.COMPUTE_DOMAIN_CREATED, note, True, made.id) for user in sharing
        ]
    return DomainPlan((made,), tuple(remarks))


def _sharing(users: list[User]) -> list[User]:
    """Those of the users who will have it: one alone, or all who name it."""
    if users[0].stay.demand.mode is Mode.AUTO:
        return users[:1]
    return users


def _body(snapshot: DomainSnapshot, users: list[User]) -> Body:
    request = DomainRequest(
        snapshot.name,
        snapshot.namespace,
        _labels(snapshot.name, users[0], users[0].workload.metadata.name),
        tuple(_owner(user) for user in users),
        (marks.COMPUTE_DOMAIN_FINALIZER,),
        dict(users[0].stay.demand.options),
    )
    return snapshot.provider.build_domain(request)


def _labels(name: str, user: User, part_of: str) -> labels.Labels:
    demand, component = user.stay.demand, labels.Component.COMPUTE_DOMAIN
    carried = labels.named(part_of, name, component) | {labels.COMPUTE_DOMAIN_MODE: demand.mode.value}
    if demand.scope is not Scope.SHARED:
        carried[labels.SET_REPLICA] = str(user.stay.replicas[0])
    if demand.group:
        carried[labels.MNNVL_GROUP] = demand.group
    return carried


def _owner(user: User) -> Body:
    """The set that a domain is for controls it; of several that share it none does."""
    (owner,) = compose.owned_by_set(user.workload)
    if user.stay.demand.mode is Mode.AUTO:
        return owner
    return {key: value for key, value in owner.items() if key not in ("controller", "blockOwnerDeletion")}


# Keeping.


def _mend(snapshot: DomainSnapshot, found: Domain, users: list[User]) -> tuple[Intent, ...]:
    meta = found.metadata
    names = [user.workload.metadata.name for user in users]
    part_of = meta.labels.get(labels.PART_OF, "")
    keeper = users[names.index(part_of)] if part_of in names else users[0]
    wanted = _labels(snapshot.name, keeper, keeper.workload.metadata.name)
    changes: Body = {}
    if lost := {key: value for key, value in wanted.items() if meta.labels.get(key) != value}:
        changes["labels"] = lost
    if marks.COMPUTE_DOMAIN_FINALIZER not in meta.finalizers:
        changes["finalizers"] = [*meta.finalizers, marks.COMPUTE_DOMAIN_FINALIZER]
    fences: list[Patch] = []
    if (owners := _owners_to_be(found, users)) is not None:
        changes["ownerReferences"] = owners
        fences = [confirm(user.workload) for user in users if user.workload.metadata.uid not in _owners(meta)]
    if not changes:
        return ()
    patch = _change(snapshot, found, changes)
    return (*fences, replace(patch, after=tuple(fence.id for fence in fences)))


def _owners_to_be(found: Domain, users: list[User]) -> list[Body] | None:
    """The owners as they should be: those who need it, and whoever is no set; None: as they are."""
    known, kind = found.metadata.owner_references, PodCliqueSet.KIND.name
    wanted = {user.workload.metadata.uid: user for user in users}
    kept = [owner for owner in known if owner.kind != kind or owner.uid in wanted]
    new = [user for uid, user in wanted.items() if uid not in _owners(found.metadata)]
    if len(kept) == len(known) and not new:
        return None
    return [*compose.plain(kept), *(_owner(user) for user in new)]


# Letting go.


def _retire(snapshot: DomainSnapshot, found: Domain) -> DomainPlan:
    """Nobody needs it. Pods go first; a count that says so is confirmed; then the domain goes. What belongs
    to a set that we have not seen may be needed by it: if that is gone, the garbage collector knows."""
    if snapshot.occupied or snapshot.strange:
        return DomainPlan()
    kind = snapshot.provider.api
    fences = [*map(confirm, snapshot.former), *map(confirm, snapshot.counts)]
    after = tuple(fence.id for fence in fences)
    writes: list[Intent] = [*fences]
    if marks.COMPUTE_DOMAIN_FINALIZER in found.metadata.finalizers:
        released = replace(_released(snapshot, found), after=after)
        writes.append(released)
        after = (released.id,)
    target = foreign_target(kind.api_version, kind.name, found)
    gone = Delete(target, uid=found.metadata.uid, after=after)
    note = f"{kind.name} {snapshot.name} deleted"
    remarks = [
        Remark(workload, EventReason.COMPUTE_DOMAIN_DELETED, note, intent=gone.id)
        for workload in snapshot.former
    ]
    return DomainPlan((*writes, gone), tuple(remarks))


def _leaving(snapshot: DomainSnapshot, found: Domain, users: list[User], rightful: list[User]) -> DomainPlan:
    """Somebody deleted it: it goes when nobody whose it was needs it any more."""
    if not rightful and not snapshot.occupied:
        held = marks.COMPUTE_DOMAIN_FINALIZER in found.metadata.finalizers
        return DomainPlan((_released(snapshot, found),) if held else ())
    words = trouble(State.TERMINATING, snapshot.provider, snapshot.name)
    return DomainPlan(
        remarks=tuple(
            Remark(user.workload, EventReason.COMPUTE_DOMAIN_TERMINATING, words, warning=True)
            for user in users
        )
    )


def _released(snapshot: DomainSnapshot, found: Domain) -> Patch:
    kept = [name for name in found.metadata.finalizers if name != marks.COMPUTE_DOMAIN_FINALIZER]
    return _change(snapshot, found, {"finalizers": kept})


def _change(snapshot: DomainSnapshot, found: Domain, metadata: Body) -> Patch:
    """A patch that fails if the domain has changed since we looked: finalizers and owners are lists, and
    the driver writes them as well."""
    kind = snapshot.provider.api
    version = {"resourceVersion": found.metadata.resource_version}
    return Patch(foreign_target(kind.api_version, kind.name, found), {"metadata": {**version, **metadata}})
