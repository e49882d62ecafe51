"""The plan for one replica of a set: what is missing is made, what is wrong is mended, what is too much goes.

    service, groups -> cliques -> gangs -> pods

Each arrow is a dependency: the right side is written after the left. A gang names its pods before they are
made or deleted (see `ledger`), so every deed on pods hangs on a write of its gang. Where the gang is right as
it is, that write is a confirmation: an empty patch that fails if the gang has changed since we looked.
"""

from __future__ import annotations

from msgspec.structs import replace

from grove.api.intents import Delete, Intent, uid_of
from grove.plan import compose, ledger
from grove.plan import pods as state
from grove.plan.expand import Clique, Gang, Shape, expand
from grove.plan.gates import released
from grove.plan.hashes import generation_hash, template_hash
from grove.plan.mend import Mender, scheduler_of
from grove.plan.model import Draft, Plan, Standing
from grove.plan.ours import keep_ours
from grove.plan.podspec import pod, pod_spec
from grove.plan.retire import retire_replica, retire_surplus
from grove.plan.snapshot import Snapshot
from grove.plan.status import CliqueView, clique_status, gang_status, group_status
from grove.plan.tally import tally
from grove.plan.targets import Kinded, confirm, create, foreign_target, target

DEFAULT_SCHEDULER = "default-scheduler"


def plan_replica(snapshot: Snapshot, now: float) -> Plan:
    """What to do about one replica."""
    snapshot = keep_ours(snapshot)
    workload = snapshot.workload
    if workload.metadata.deletion_timestamp is not None:
        return Plan()  # the set sees to it that all goes
    if snapshot.index >= workload.spec.replicas:
        return Plan(retire_replica(snapshot))
    return _Planner(snapshot, now).plan()


class _Planner:
    """One pass over one replica. It only collects: nothing it does can be seen before `plan` returns."""

    def __init__(self, snapshot: Snapshot, now: float) -> None:
        self.snapshot, self.now = snapshot, now
        self.workload = snapshot.workload
        self.shape = _shape(snapshot)
        self.mender = Mender(snapshot, self.shape)
        self.intents: list[Intent] = []
        self.wake_at: float | None = None
        self.views: dict[str, CliqueView] = {}
        self.rolls: dict[str, ledger.Roll] = {}
        self.memberships: dict[str, ledger.Membership] = {}

    def plan(self) -> Plan:
        self.intents += self.mender.parents()
        for clique in self.shape.cliques:
            self._enrol(clique)
        for gang in self.shape.gangs:
            self._run_gang(gang)
        self.intents += retire_surplus(self.snapshot, self.shape, self.intents)
        return Plan(tuple(self.intents), self._drafts(), self.wake_at, self._standing())

    def _enrol(self, clique: Clique) -> None:
        """Decide who belongs to a clique, and count how its pods fare."""
        hash_ = template_hash(clique.template, self.workload.spec.template.priority_class_name)
        roll = self._roll(clique, hash_)
        membership = ledger.enrol(roll, clique.replicas, self.now)
        self.rolls[clique.name], self.memberships[clique.name] = roll, membership
        if membership.wake_at is not None:
            self.wake_at = min(self.wake_at or membership.wake_at, membership.wake_at)
        self.views[clique.name] = CliqueView(clique, tally(roll.pods, hash_), hash_)

    def _roll(self, clique: Clique, hash_: str) -> ledger.Roll:
        existing = self.snapshot.cliques.get(clique.name)
        uid = existing.metadata.uid if existing else uid_of(self.mender.creates[clique.name])
        own = tuple(pod for pod in self.snapshot.pods if state.controller_uid(pod.metadata) == uid)
        names = {pod.metadata.name for pod in own}
        gang = self.snapshot.gangs.get(clique.gang)
        groups = gang.spec.pod_groups if gang else ()
        references = next((group.pod_references for group in groups if group.name == clique.name), ())
        return ledger.Roll(
            clique=clique.name,
            uid=uid,
            epoch=f"{gang.metadata.uid}/{gang.metadata.generation}" if gang else "",
            references=tuple(reference.name for reference in references),
            pods=own,
            strangers=frozenset(pod.metadata.name for pod in self.snapshot.pods) - names,
            departed=self.snapshot.departed,
            template_hash=hash_,
        )

    def _run_gang(self, gang: Gang) -> None:
        """Write who the members are, then make and delete pods accordingly, then open the gates."""
        references = {clique.name: self.memberships[clique.name].references for clique in gang.cliques}
        scheduler = self._scheduler(gang)
        write = self.mender.gang(gang, scheduler, references)
        deeds = self._deeds(gang, scheduler)
        if write is None and deeds:
            write = confirm(self.snapshot.gangs[gang.name])
        if write is not None:
            self.intents.append(write)
            deeds = [_after(deed, write) for deed in deeds]
        self.intents += deeds

    def _deeds(self, gang: Gang, scheduler: str) -> list[Intent]:
        waits = bool(gang.base_gang) and not self._base_scheduled(gang.base_gang)
        deeds: list[Intent] = []
        for clique in gang.cliques:
            deeds += self._births(clique, scheduler, waits)
        for clique in self.shape.cliques:
            if clique.gang == gang.name:
                deeds += self._departures(clique)
        if not waits:
            members = [
                member.pod for clique in gang.cliques for member in self.memberships[clique.name].members
            ]
            deeds += released(pod for pod in members if pod is not None)
        return deeds

    def _births(self, clique: Clique, scheduler: str, gated: bool) -> list[Intent]:
        missing = self.memberships[clique.name].missing
        if not missing:
            return []
        spec = pod_spec(self.workload, self.snapshot.index, clique, scheduler, gated)
        carried = compose.clique_labels(self.workload, self.snapshot.index, clique)
        owners = self.mender.owned_by_clique(clique, self.rolls[clique.name].uid)
        return [create(pod(self.workload, clique, member, spec, carried, owners)) for member in missing]

    def _departures(self, clique: Clique) -> list[Intent]:
        """Delete who is no longer a member. Fewer replicas than before are first confirmed with the clique:
        an old view of its count must not cost a pod."""
        leaving = self.memberships[clique.name].leaving
        existing = self.snapshot.cliques.get(clique.name)
        deeds: list[Intent] = []
        after: tuple[str, ...] = ()
        if existing is not None and any(state.alive(pod) for pod in leaving):
            fence = confirm(existing)
            after = (fence.id,)
            if all(intent.id != fence.id for intent in self.intents):  # a planned change confirms as well
                deeds.append(fence)
        return deeds + [
            Delete(foreign_target("v1", "Pod", pod), uid=pod.metadata.uid, after=after) for pod in leaving
        ]

    def _base_scheduled(self, base: str) -> bool:
        return all(self.views[clique.name].scheduled for clique in self.shape.cliques if clique.gang == base)

    def _scheduler(self, gang: Gang) -> str:
        for clique in gang.cliques:
            if chosen := scheduler_of(clique):
                return chosen
        return DEFAULT_SCHEDULER

    def _drafts(self) -> tuple[Draft, ...]:
        set_name, hash_ = self.workload.metadata.name, generation_hash(self.workload)
        drafts: list[Draft] = []
        for clique in self.shape.cliques:
            if found := self.snapshot.cliques.get(clique.name):
                desired = clique_status(found, self.views[clique.name], set_name, hash_, self.now)
                drafts.append(_draft(found, found.status, desired))
        for group in self.shape.groups:
            if found_group := self.snapshot.groups.get(group.name):
                desired_group = group_status(
                    found_group, group, self._group_views(group.name), set_name, hash_, self.now
                )
                drafts.append(_draft(found_group, found_group.status, desired_group))
        for gang in self.shape.gangs:
            if found_gang := self.snapshot.gangs.get(gang.name):
                status = gang_status(found_gang, gang, self.views, self.now)
                drafts.append(_draft(found_gang, found_gang.status, status))
        return tuple(drafts)

    def _group_views(self, group: str) -> list[list[CliqueView]]:
        replicas: dict[int, list[CliqueView]] = {}
        for clique in self.shape.cliques:
            if clique.group is not None and clique.group.name == group:
                replicas.setdefault(clique.group_replica, []).append(self.views[clique.name])
        return list(replicas.values())

    def _standing(self) -> Standing:
        alone = [view for view in self.views.values() if view.wanted.group is None]
        groups = [(group, self._group_views(group.name)) for group in self.shape.groups]
        available = all(view.available for view in alone) and all(
            group.replicas == 0
            or sum(all(view.scheduled and view.available for view in views) for views in replicas)
            >= group.min_available
            for group, replicas in groups
        )
        updated_groups = sum(
            all(view.updated for views in replicas for view in views) for _, replicas in groups
        )
        updated_cliques = sum(view.updated for view in alone)
        return Standing(
            available=available,
            updated=available and updated_groups == len(groups) and updated_cliques == len(alone),
            cliques=len(alone),
            updated_cliques=updated_cliques,
            groups=len(groups),
            updated_groups=updated_groups,
        )


def _shape(snapshot: Snapshot) -> Shape:
    groups = {name: group.spec.replicas for name, group in snapshot.groups.items()}
    cliques = {name: clique.spec.replicas for name, clique in snapshot.cliques.items()}
    return expand(snapshot.workload, snapshot.index, groups, cliques)


def _after(deed: Intent, write: Intent) -> Intent:
    return replace(deed, after=(*deed.after, write.id))


def _draft(found: Kinded, current: object, desired: object) -> Draft:
    return Draft(target(found), current, desired, found.metadata.generation)
