"""Shared claims in the tree: below the object that they belong to, with the number of pods that use them."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from grove.api.types.kubernetes_objects import ResourceClaim
from grove.cli.views.text_layout import lines, tree
from grove.views.claim_view import claim_state
from grove.views.set_view import SetView, set_views
from tests.plan.builders import a_set
from tests.plan.simulator.api_server import Body
from tests.plan.simulator.shared_claims import own
from tests.plan.simulator.simulator import Simulator
from tests.views.builders import NOW, found


def sharing_world() -> Simulator:
    """Shared claims on each of the three levels, for all replicas and for each replica."""
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
    (view,) = set_views(replace(found(sim), claims=claims), NOW)
    return view


def test_claim_is_shown_once_below_its_object():
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


def test_claims_are_part_of_json_output():
    (claim,) = msgspec.to_builtins(seen(sharing_world()))["members"][0]["claims"]
    assert claim == {"name": "demo-0-u", "state": "pending", "pods": 0}


def test_errors_of_groups_and_cliques_are_shown_below_them():
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
def test_claim_state(meta: Body, status: Body, word: str):
    body = {"metadata": {"name": "c", **meta}, "status": status}
    assert claim_state(msgspec.json.decode(msgspec.json.encode(body), type=ResourceClaim)) == word
