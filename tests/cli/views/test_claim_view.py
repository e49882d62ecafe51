"""Shared claims in the tree: below whom they belong to, with who uses them."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from grove.api.types.kubernetes_objects import ResourceClaim
from grove.cli.views.claim_view import claim_state
from grove.cli.views.set_view import SetView, set_views
from grove.cli.views.text_layout import lines, tree
from tests.cli.views.builders import found
from tests.plan.builders import a_set
from tests.plan.simulator.api_server import Body
from tests.plan.simulator.shared_claims import own
from tests.plan.simulator.simulator import Simulator


def sharing_world() -> Simulator:
    """Something shared on each of the three levels, by all and by each."""
    body = a_set("a:2 b:1", "x:2/2=b", name="demo")
    template = body["spec"]["template"]
    template["resourceClaimTemplates"] = own("t", "u")
    scopes = {"t": "AllReplicas", "u": "PerReplica"}
    for part in (template, *template["podCliqueScalingGroups"], *template["cliques"]):
        part["resourceSharing"] = [{"name": name, "scope": scope} for name, scope in scopes.items()]
    sim = Simulator(body)
    sim.settle()
    return sim


def seen(sim: Simulator) -> SetView:
    claims = tuple(
        msgspec.json.decode(stored, type=ResourceClaim) for stored in sim.api.all("ResourceClaim").values()
    )
    (view,) = set_views(replace(found(sim), claims=claims))
    return view


def test_each_claim_stands_once_below_its_part():
    sim = sharing_world()
    users = [{"resource": "pods", "name": "p", "uid": "u"}, {"resource": "pods", "name": "q", "uid": "v"}]
    for name, status in {
        "demo-all-t": {"allocation": {}, "reservedFor": users},
        "demo-0-a-1-u": {"allocation": {}, "reservedFor": users[:1]},
        "demo-0-x-all-t": {"allocation": {}},
    }.items():
        sim.api.patch("ResourceClaim", name, {"status": status}, status=True)
    assert [line.text for line in lines(tree(seen(sim), pods=False))] == [
        "demo  0/1 available",
        "├─ demo-all-t  claim reserved, used by 2 pods",
        "└─ replica 0  Pending, gang demo-0",
        "   ├─ demo-0-u  claim pending",
        "   ├─ demo-0-a  0/2 ready",
        "   │  ├─ demo-0-a-all-t  claim pending",
        "   │  ├─ demo-0-a-0-u  claim pending",
        "   │  └─ demo-0-a-1-u  claim reserved, used by 1 pod",
        "   └─ demo-0-x  0/2 available",
        "      ├─ demo-0-x-all-t  claim allocated",
        "      ├─ replica 0  Pending, gang demo-0",
        "      │  ├─ demo-0-x-0-u  claim pending",
        "      │  └─ demo-0-x-0-b  0/1 ready",
        "      │     ├─ demo-0-x-0-b-all-t  claim pending",
        "      │     └─ demo-0-x-0-b-0-u  claim pending",
        "      └─ replica 1  Pending, gang demo-0",
        "         ├─ demo-0-x-1-u  claim pending",
        "         └─ demo-0-x-1-b  0/1 ready",
        "            ├─ demo-0-x-1-b-all-t  claim pending",
        "            └─ demo-0-x-1-b-0-u  claim pending",
    ]


def test_programs_get_them_too():
    (claim,) = msgspec.to_builtins(seen(sharing_world()))["members"][0]["claims"]
    assert claim == {"name": "demo-0-u", "state": "pending", "pods": 0}


def test_a_groups_trouble_and_a_cliques_stand_below_them():
    sim = sharing_world()
    error = {"code": "E", "description": "no\nquota", "observedAt": "2026-01-01T00:00:00Z"}
    for kind, name in (("PodCliqueScalingGroup", "demo-0-x"), ("PodClique", "demo-0-a")):
        sim.api.patch(kind, name, {"status": {"lastErrors": [error]}}, status=True)
    texts = [line.text for line in lines(tree(seen(sim), pods=False))]
    assert texts[-1] == "      └─ error  no quota"
    assert "   │  └─ error  no quota" in texts


@pytest.mark.parametrize(
    ("meta", "status", "word"),
    [
        ({}, {}, "pending"),
        ({}, {"allocation": None}, "pending"),
        ({}, {"allocation": {"devices": {}}}, "allocated"),
        ({}, {"allocation": {}, "reservedFor": [{"name": "p", "uid": "u"}]}, "reserved"),
        ({"deletionTimestamp": "2026-01-01T00:00:00Z"}, {"allocation": {}}, "terminating"),
    ],
)
def test_the_state_of_a_claim(meta: Body, status: Body, word: str):
    body = {"metadata": {"name": "c", **meta}, "status": status}
    assert claim_state(msgspec.json.decode(msgspec.json.encode(body), type=ResourceClaim)) == word
