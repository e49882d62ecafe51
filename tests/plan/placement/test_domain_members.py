"""The nodes of fabric domains, as gangs are assigned to them one after another."""

from __future__ import annotations

from msgspec.structs import replace

from grove.plan.placement.assignment import Assignment, GangName, PodSlot
from grove.plan.placement.demand import Demand, FabricDomain
from grove.plan.placement.domain_members import DomainMembers
from tests.plan.placement.gangs import demand
from tests.plan.placement.test_packed_domains import packed


class Read(dict[FabricDomain, frozenset[str]]):
    """Counts how often it is read."""

    reads = 0

    def get(self, *args: object) -> object:  # type: ignore[override]
        Read.reads += 1
        return super().get(*args)  # type: ignore[call-overload]


def a_member(name: str, domain: str = "team") -> Demand:
    return packed(demand(name, 1), name=domain)


def on(demand: Demand, node: str) -> Assignment:
    return Assignment(nodes={PodSlot(demand.pods[0].slot.clique, 0): node})


def test_gang_reads_only_the_gangs_of_its_domains() -> None:
    """A round asks for every gang: with a look at all others its time would grow with their square."""
    others = {
        GangName("ns", f"g{i}"): Read({FabricDomain("ns", f"d{i}"): frozenset({f"n{i}"})}) for i in range(50)
    }
    members = DomainMembers({}, others)
    Read.reads = 0
    assert members.of(a_member("a", "d7")) == {FabricDomain("ns", "d7"): frozenset({"n7"})}
    assert Read.reads <= 1


def test_assignment_replaces_the_former_one_of_its_gang() -> None:
    members, domain = DomainMembers({FabricDomain("ns", "team"): frozenset({"b"})}, {}), ("ns", "team")
    first, second = a_member("a"), a_member("b")
    members.assign(first, on(first, "n1"))
    members.assign(second, on(second, "n2"))
    assert members.of(first) == {domain: {"b", "n2"}}
    members.assign(second, on(second, "n3"))
    assert members.of(first) == {domain: {"b", "n3"}}
    members.assign(second, replace(on(second, "n3"), failed=True))
    assert members.of(first) == {domain: {"b"}}
    assert members.of(second) == {domain: {"b", "n1"}}
