"""The plan for one replica of a set: what is missing is made, what is wrong is mended, what is too much goes.

    service, groups -> cliques -> claims -> gangs -> pods
                       `-> autoscalers

Each arrow is a dependency: the right side is written after the left, and gone after it has let go. A gang
names its pods before they are made and forgets them before they are deleted (see `ledger` and `gangs`).
"""

from __future__ import annotations

from msgspec.structs import replace

from grove.api.cliques import PodClique
from grove.api.intents import uid_of
from grove.plan import limits, report
from grove.plan.autoscalers import plan_autoscalers
from grove.plan.claims import Claims
from grove.plan.enrolment import Enrolled, Enrolment
from grove.plan.expand import Clique, Shape, expand
from grove.plan.fabric import Fabric
from grove.plan.gangs import GangWork
from grove.plan.ghosts import forgotten
from grove.plan.hashes import generation_hash
from grove.plan.heal import Healing
from grove.plan.mend import Mender
from grove.plan.model import Plan, Standing
from grove.plan.ours import Households, keep_ours
from grove.plan.renew import Renewal
from grove.plan.retire import retire, retire_surplus
from grove.plan.snapshot import Snapshot
from grove.plan.takeover import unburdened
from grove.plan.waits import Waits
from grove.plan.writes import Writes


def plan_replica(snapshot: Snapshot, now: float) -> Plan:
    """What to do about one replica."""
    writes = Writes(unburdened(snapshot))
    workload, households = snapshot.workload, Households(snapshot.pods)
    if workload.metadata.deletion_timestamp is not None:
        return Plan(writes.intents())  # the set sees to it that all goes
    if snapshot.index >= workload.spec.replicas:
        return retire((snapshot,), now)
    return _plan_present(keep_ours(snapshot), households, writes, now)


def plan_in_vain(snapshot: Snapshot, now: float) -> Plan:
    """What to do about a replica where nothing can be made any more, since its namespace is on its way out:
    let go of what would hold that up, and tell how it fares."""
    plan = plan_replica(snapshot, now)
    return replace(plan, intents=tuple(unburdened(snapshot)), wake_at=None)


def _plan_present(snapshot: Snapshot, households: Households, writes: Writes, now: float) -> Plan:
    """A replica that the set has."""
    fabric = Fabric(snapshot)
    held = limits.present(snapshot) if snapshot.held else None
    if held is not None and not held.cliques:
        nothing = Standing(generation_hash=generation_hash(snapshot.workload), rolled=True)
        return Plan(standing=nothing, complaints=limits.complaints(snapshot), partial=True)
    shape = _shape(snapshot, fabric, held)
    mender = Mender(snapshot, shape, households, writes)
    mender.parents()
    enrolment = Enrolment(snapshot, households, now)

    def enrol(clique: Clique, outgoing: frozenset[str] = frozenset()) -> Enrolled:
        return enrolment.enrol(clique, _uid(snapshot, mender, clique.name), outgoing)

    renewal, healing = Renewal(snapshot, writes, enrol), Healing(snapshot, shape, writes, enrol, now)
    enrolled = {clique.name: enrol(clique) for clique in shape.cliques}
    cliques = healing.plan(renewal.plan(shape, enrolled, now), renewal)
    waits, claims = Waits(snapshot, shape), Claims(snapshot, mender, writes)
    claims.plan(shape, cliques)
    gang_work = GangWork(snapshot, cliques, mender, waits, claims, writes, healing.notes, fabric)
    for gang in shape.gangs:
        gang_work.plan(gang)
    retire_surplus(snapshot, shape, households, writes)
    claims.retire(shape, cliques)
    plan_autoscalers(snapshot, shape, mender, writes)
    everybody = [pod for clique in cliques.values() for pod in clique.pods]
    ghosts, look_again = forgotten(snapshot.workload, everybody, now)
    writes.add_all(ghosts)
    # Whom an update or a termination replaces is still there: it is told of when that is done.
    views = {name: clique.view for name, clique in enrolled.items()}
    members = {gang.name: [clique.name for clique in gang.cliques] for gang in shape.gangs}
    had_nodes = any(map(healing.had_nodes, cliques.values()))
    standing = report.standing(shape, views, renewal, had_nodes, gang_work.teller.unlisted)
    if held is not None and not limits.is_complete(snapshot, held):
        standing = replace(standing, available=False, updated=False)
    return Plan(
        writes.intents() if held is None else limits.without_additions(writes.intents()),
        report.drafts(snapshot, shape, views, renewal, healing, gang_work.teller.words, now),
        _earliest(renewal.wake_at, healing.wake_at, look_again, _wake_at(cliques)),
        standing,
        tuple(gang_work.unplaced),
        (
            *waits.complaints(shape.cliques),
            *claims.complaints,
            *gang_work.teller.complaints(members),
            *fabric.complaints(shape.cliques),
            *(limits.complaints(snapshot) if held is not None else ()),
        ),
        tuple(healing.news),
        partial=held is not None,
    )


def _shape(snapshot: Snapshot, fabric: Fabric, held: limits.Present | None) -> Shape:
    groups = {name: group.spec.replicas for name, group in snapshot.groups.items()}
    cliques = {name: clique.spec.replicas for name, clique in snapshot.cliques.items()}
    return expand(snapshot.workload, snapshot.index, groups, cliques, fabric.seats, held)


def _uid(snapshot: Snapshot, mender: Mender, clique: str) -> str:
    if (found := snapshot.cliques.get(clique)) is not None:
        return found.metadata.uid
    made = mender.made(PodClique.KIND, clique)
    assert made is not None
    return uid_of(made)


def _wake_at(cliques: dict[str, Enrolled]) -> float | None:
    moments = [clique.membership.wake_at for clique in cliques.values()]
    return min((moment for moment in moments if moment is not None), default=None)


def _earliest(*moments: float | None) -> float | None:
    return min((moment for moment in moments if moment is not None), default=None)
