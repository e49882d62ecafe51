"""Shared claims: which there are, whose they are, and which pods refer to them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import yaml
from msgspec.structs import replace

from grove.api import labels
from grove.api.cluster import ResourceClaimTemplateObject
from grove.plan.expand import expand
from grove.plan.sharing import referred, referred_templates, with_claims
from tests.plan import hands
from tests.plan.api_server import Body
from tests.plan.builders import a_set, read_set
from tests.plan.claims import PROTECTION
from tests.plan.world import World
from tests.shared import shared_data

KIND = "ResourceClaim"
SET, GROUP, CLIQUE = (
    "ERR_SYNC_PCS_RESOURCE_CLAIM",
    "ERR_SYNC_PCSG_RESOURCE_CLAIM",
    "ERR_SYNC_PCLQ_RESOURCE_CLAIM",
)


def device(name: str) -> Body:
    return {"devices": {"requests": [{"name": name, "exactly": {"deviceClassName": f"{name}-class"}}]}}


def own(*names: str) -> list[Body]:
    """Templates of the set itself; their metadata is nobody's."""
    metadata = {"labels": {"not": "copied"}}
    return [{"name": name, "templateSpec": {"metadata": metadata, "spec": device(name)}} for name in names]


def a_template(namespace: str, name: str) -> ResourceClaimTemplateObject:
    body = {"metadata": {"namespace": namespace, "name": name}, "spec": {"spec": device(name)}}
    return msgspec.json.decode(msgspec.json.encode(body), type=ResourceClaimTemplateObject)


def shared(*words: str) -> list[Body]:
    """`name` for all replicas, `name/` for each of them, `name@namespace` for a template elsewhere."""
    entries = []
    for word in words:
        name, _, namespace = word.rstrip("/").partition("@")
        scope = "PerReplica" if word.endswith("/") else "AllReplicas"
        entries.append({"name": name, "scope": scope, **({"namespace": namespace} if namespace else {})})
    return entries


def sharing(
    set_: str = "",
    group: str = "",
    clique: str = "",
    member: str = "",
    groups: str = "x:2/1=b",
    **options: Any,
) -> Body:
    """A clique `a` of 2 and a group `x` of 2 replicas of `b`; each level shares what is named."""
    words = f"{set_} {group} {clique} {member}".split()
    named = sorted({word.rstrip("/") for word in words if "@" not in word} - {"ext", "ext/"})
    body = a_set("a:2/1 b:1", groups, resourceClaimTemplates=own(*named), **options)
    template = body["spec"]["template"]
    template["resourceSharing"] = shared(*set_.split())
    template["podCliqueScalingGroups"][0]["resourceSharing"] = shared(*group.split())
    template["cliques"][0]["resourceSharing"] = shared(*clique.split())
    template["cliques"][1]["resourceSharing"] = shared(*member.split())
    return body


def settled(body: Body) -> World:
    world = World(body)
    for index in range(body["spec"]["replicas"]):
        world.settle(index)
    return world


def claims(world: World) -> set[str]:
    return set(world.api.all(KIND))


def used(world: World, clique: str) -> list[list[str]]:
    """What the pods of a clique refer to, by index."""
    found = sorted(world.pods(clique).values(), key=lambda pod: pod.metadata.labels[labels.POD_INDEX])
    return [[claim.resource_claim_name for claim in pod.spec.resource_claims] for pod in found]


# Upstream's workload, level by level.

ALL_PODS = ["rs-test-all-int-tpl5", "rs-test-0-ext-tpl"]


def upstreams() -> World:
    text = shared_data("workloads/workload-resource-sharing.yaml").read_text()
    body = [part for part in yaml.safe_load_all(text) if part][-1]
    body["metadata"]["namespace"] = "ns"
    world = World(body)
    world.claim_templates = {
        place: a_template(*place) for place in (("ns", "ext-tpl"), ("rs-shared", "ext-ns-tpl"))
    }
    return world


def expected(group_replicas: int = 2, pods: int = 1) -> set[str]:
    return {
        "rs-test-all-int-tpl5",
        "rs-test-all-int-tpl7",
        "rs-test-0-ext-tpl",
        "rs-test-0-int-tpl",
        "rs-test-0-worker-a-all-ext-ns-tpl",
        "rs-test-0-sga-all-int-tpl2",
        "rs-test-0-sga-all-int-tpl8",
        *(f"rs-test-0-worker-a-{index}-int-tpl4" for index in range(pods)),
        *(f"rs-test-0-sga-{index}-int-tpl3" for index in range(group_replicas)),
        *(f"rs-test-0-sga-{index}-worker-b-all-int-tpl6" for index in range(group_replicas)),
    }


def test_upstreams_workload_has_the_claims_that_upstream_makes():
    world = upstreams()
    world.settle()
    assert claims(world) == expected()
    for replicas in (1, 3):
        world.scale("PodCliqueScalingGroup", "rs-test-0-sga", replicas)
        world.settle()
        assert claims(world) == expected(replicas)
    for pods in (2, 1):
        world.scale("PodClique", "rs-test-0-worker-a", pods)
        world.settle()
        assert claims(world) == expected(3, pods)


def test_and_its_pods_refer_to_them_as_filters_say():
    world = upstreams()
    world.settle()
    of_a = ["rs-test-0-int-tpl", "rs-test-0-worker-a-all-ext-ns-tpl", "rs-test-0-worker-a-0-int-tpl4"]
    assert used(world, "rs-test-0-worker-a") == [ALL_PODS + of_a]
    assert used(world, "rs-test-0-sga-1-worker-b") == [
        [
            "rs-test-all-int-tpl5",
            "rs-test-all-int-tpl7",
            "rs-test-0-ext-tpl",
            "rs-test-0-sga-all-int-tpl2",
            "rs-test-0-sga-all-int-tpl8",
            "rs-test-0-sga-1-int-tpl3",
            "rs-test-0-sga-1-worker-b-all-int-tpl6",
        ]
    ]


def owner(world: World, name: str) -> tuple[str, str]:
    (reference,) = world.api.get(KIND, name)["metadata"]["ownerReferences"]
    held = world.api.get(reference["kind"], reference["name"])
    assert reference["uid"] == held["metadata"]["uid"]
    assert reference["controller"]
    return reference["kind"], reference["name"]


def place(world: World, name: str) -> dict[str, str]:
    """The labels of a claim beyond those that all carry."""
    carried = world.api.get(KIND, name)["metadata"]["labels"]
    common = labels.managed("wl") | {"app.kubernetes.io/component": "resource-claim"}
    assert common.items() <= carried.items()
    return {key: value for key, value in carried.items() if key not in common}


REPLICA, OF_GROUP = "grove.io/podcliqueset-replica-index", "grove.io/podcliquescalinggroup"
GROUP_INDEX, OF_CLIQUE = "grove.io/podcliquescalinggroup-replica-index", "grove.io/podclique"
POD = "grove.io/podclique-pod-index"


@pytest.mark.parametrize(
    ("body", "name", "held_by", "carried"),
    [
        (sharing(set_="t"), "wl-all-t", ("PodCliqueSet", "wl"), {}),
        (sharing(set_="t/"), "wl-0-t", ("PodCliqueSet", "wl"), {REPLICA: "0"}),
        (sharing(group="t"), "wl-0-x-all-t", ("PodCliqueScalingGroup", "wl-0-x"), {OF_GROUP: "wl-0-x"}),
        (
            sharing(group="t/"),
            "wl-0-x-1-t",
            ("PodCliqueScalingGroup", "wl-0-x"),
            {OF_GROUP: "wl-0-x", GROUP_INDEX: "1"},
        ),
        (sharing(clique="t"), "wl-0-a-all-t", ("PodClique", "wl-0-a"), {OF_CLIQUE: "wl-0-a"}),
        (sharing(clique="t/"), "wl-0-a-1-t", ("PodClique", "wl-0-a"), {OF_CLIQUE: "wl-0-a", POD: "1"}),
        (sharing(member="t"), "wl-0-x-1-b-all-t", ("PodClique", "wl-0-x-1-b"), {OF_CLIQUE: "wl-0-x-1-b"}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_it_is_as_the_contract_says(body, name, held_by, carried):
    world = settled(body)
    assert name in claims(world)
    assert owner(world, name) == held_by
    assert place(world, name) == carried
    found = world.api.get(KIND, name)
    assert found["apiVersion"] == "resource.k8s.io/v1"
    assert found["spec"] == device("t"), "of the template the spec, not the metadata"
    assert "annotations" not in found["metadata"]


FILTERS = [
    (None, {"a", "b"}),
    ({"childCliqueNames": ["a"]}, {"a"}),
    ({"childCliqueNames": ["b"]}, {"b"}),
    ({"childScalingGroupNames": ["x"]}, {"b"}),
    ({"childCliqueNames": ["x"]}, {"b"}),
    ({"childScalingGroupNames": ["a"]}, {"a"}),
    ({"childCliqueNames": ["a"], "childScalingGroupNames": ["x"]}, {"a", "b"}),
    ({"childCliqueNames": ["c"]}, set()),
]


@pytest.mark.parametrize(("chosen", "cliques"), FILTERS, ids=str)
def test_filters_decide_who_refers_to_it_and_never_whether_it_is_made(chosen, cliques):
    body = sharing(set_="t")
    if chosen:
        body["spec"]["template"]["resourceSharing"][0]["filter"] = chosen
    workload = read_set(body)
    shape = expand(workload, 0, {}, {})
    found = {clique.template.name for clique in shape.cliques if referred(workload, 0, clique, 0)}
    assert found == cliques
    assert claims(settled(body)) == {"wl-all-t"}


def test_a_filter_of_a_group_names_its_cliques():
    body = a_set("a:1 b:1", "x:1=a,b", resourceClaimTemplates=own("t"))
    entry = {"name": "t", "scope": "AllReplicas", "filter": {"childCliqueNames": ["b"]}}
    body["spec"]["template"]["podCliqueScalingGroups"][0]["resourceSharing"] = [entry]
    world = settled(body)
    assert (used(world, "wl-0-x-0-a"), used(world, "wl-0-x-0-b")) == ([[]], [["wl-0-x-all-t"]])


def test_every_container_of_the_user_has_it_and_what_was_there_stays():
    mine = {"name": "mine", "resourceClaimTemplateName": "mine"}
    spec = {
        "resourceClaims": [mine],
        "containers": [{"name": "main", "resources": {"limits": {"cpu": 1}, "claims": [{"name": "mine"}]}}],
        "initContainers": [{"name": "load"}, {"name": "grove-initc"}],
    }
    found = with_claims(spec, ["one", "two"])
    assert found["resourceClaims"] == [
        mine,
        {"name": "one", "resourceClaimName": "one"},
        {"name": "two", "resourceClaimName": "two"},
    ]
    assert found["containers"][0]["resources"] == {
        "limits": {"cpu": 1},
        "claims": [{"name": "mine"}, {"name": "one"}, {"name": "two"}],
    }
    load, waits = found["initContainers"]
    assert load["resources"]["claims"] == [{"name": "one"}, {"name": "two"}]
    assert "resources" not in waits, "it only looks at pods"
    assert with_claims(found, ["one", "two"]) == found
    assert with_claims(spec, []) is spec


def test_it_changes_neither_hash_nor_clique():
    plain, sharing_ = settled(sharing()), settled(sharing("t", "t", "t/", "t"))
    for name in ("wl-0-a", "wl-0-x-0-b"):
        before, after = (world.api.get("PodClique", name) for world in (plain, sharing_))
        assert before["spec"] == after["spec"]
        assert before["metadata"]["labels"] == after["metadata"]["labels"]


def test_a_set_without_sharing_costs_nothing():
    world = World(sharing())
    assert not [intent.id for intent in world.plan().intents if KIND in intent.id]
    assert referred_templates(read_set(sharing())) == frozenset()


def test_which_templates_are_meant():
    found = read_set(sharing("ext own@elsewhere", "ext@third/", clique="t"))
    assert referred_templates(found) == {("ns", "ext"), ("elsewhere", "own"), ("third", "ext")}


def test_a_template_of_another_namespace_is_not_that_of_the_set():
    body = sharing(set_="t t@elsewhere")
    world = World(body)
    world.claim_templates = {("elsewhere", "t"): a_template("elsewhere", "other")}
    workload = world.snapshot().workload
    assert referred_templates(workload) == {("elsewhere", "t")}


# The order of things.


def after(world: World, intent: str) -> set[str]:
    """Everything that must have been written before."""
    by_id = {found.id: found for found in world.plan().intents}
    found: set[str] = set()
    reach = [*by_id[intent].after]
    while reach:
        each = reach.pop()
        found.add(each)
        reach += by_id[each].after
    return found


def test_claims_come_after_their_owner_and_before_the_gang_and_its_pods():
    world = World(sharing(set_="t/", group="t/", clique="t/"))
    assert after(world, f"create {KIND} ns/wl-0-a-1-t") == {"create PodClique ns/wl-0-a"}
    assert after(world, f"create {KIND} ns/wl-0-x-0-t") == {"create PodCliqueScalingGroup ns/wl-0-x"}
    made = {f"create {KIND} ns/wl-0-{name}-t" for name in ("a-0", "a-1", "x-0")} | {
        f"create {KIND} ns/wl-0-t"
    }
    assert made <= after(world, "create PodGang ns/wl-0")
    scaled = after(world, "create PodGang ns/wl-0-x-0")
    assert f"create {KIND} ns/wl-0-x-1-t" in scaled
    assert f"create {KIND} ns/wl-0-a-0-t" not in scaled, "that is for others"


def test_what_all_replicas_share_is_waited_for():
    world = World(sharing(set_="t"))
    assert not [intent.id for intent in world.plan().intents if "PodGang" in intent.id or "Pod " in intent.id]
    world.share()
    assert [intent for intent in world.plan().intents if intent.id.startswith("create Pod ")]
    assert f"create {KIND} ns/wl-all-t" not in {intent.id for intent in world.plan().intents}, (
        "not ours to make"
    )


def test_a_pod_that_is_added_waits_for_its_claim_alone():
    world = settled(sharing(clique="t/"))
    world.scale("PodClique", "wl-0-a", 3)
    plan = world.plan()
    (birth,) = (intent for intent in plan.intents if intent.id.startswith("create Pod "))
    (gang,) = (intent for intent in plan.intents if intent.id == "patch PodGang ns/wl-0")
    assert f"create {KIND} ns/wl-0-a-2-t" in birth.after
    assert f"create {KIND} ns/wl-0-a-2-t" not in gang.after, "others come and go without it"


# Scaling in, deletion.


def test_what_is_scaled_in_goes_after_its_pod_once_the_count_is_known_to_say_so():
    world = settled(sharing(clique="t/"))
    hands.run_all(world)
    world.settle()
    world.scale("PodClique", "wl-0-a", 1)
    (gone,) = (intent for intent in world.plan().intents if intent.id.startswith("delete Pod "))
    removal = next(intent for intent in world.plan().intents if intent.id == f"delete {KIND} ns/wl-0-a-1-t")
    assert removal.uid == world.api.get(KIND, "wl-0-a-1-t")["metadata"]["uid"]
    assert set(removal.after) == {"patch PodClique ns/wl-0-a", gone.id}
    world.settle()
    assert claims(world) == {"wl-0-a-0-t"}


def test_the_claim_of_a_pod_that_stays_stays_whatever_its_index():
    """The pod of index 0 is missed least: it goes, and index 1 stays."""
    world = settled(sharing(clique="t/"))
    (first,) = (name for name, pod in world.pods("wl-0-a").items() if pod.metadata.labels[POD] == "0")
    hands.run_all(world)
    hands.crash(world, first)
    world.settle()
    world.scale("PodClique", "wl-0-a", 1)
    world.settle()
    hands.finish_terminating(world)
    world.settle()
    (left,) = world.pods("wl-0-a").values()
    assert left.metadata.labels[POD] == "1"
    assert claims(world) == {"wl-0-a-0-t", "wl-0-a-1-t"}, "those of the count, and the one in use"


@pytest.mark.parametrize("replicas", [1, 0])
def test_a_group_scaled_in_takes_the_claims_of_its_replicas_along(replicas):
    world = settled(sharing(group="all each/", member="t/"))
    world.scale("PodCliqueScalingGroup", "wl-0-x", replicas)
    world.settle()
    kept = {f"wl-0-x-{index}-{name}" for index in range(replicas) for name in ("each", "b-0-t")}
    assert claims(world) == {"wl-0-x-all-all"} | kept


def test_a_replica_takes_its_claims_along_and_leaves_what_all_share():
    world = settled(sharing("all each/", "t", "t/", "t", replicas=2))
    assert "wl-1-each" in claims(world)
    world.scale("PodCliqueSet", "wl", 1)
    plan = world.plan(1)
    ids = [intent.id for intent in plan.intents]
    assert f"delete {KIND} ns/wl-1-each" in ids
    assert not [id_ for id_ in ids if "wl-all-" in id_]
    world.settle(1)
    assert {name for name in claims(world) if name.startswith("wl-1")} == set()
    assert "wl-all-all" in claims(world)


def test_a_claim_goes_before_the_clique_that_it_belongs_to():
    """Afterwards nobody would know whose it was, and the garbage collector takes its time."""
    world = settled(sharing(member="t"))
    world.scale("PodCliqueScalingGroup", "wl-0-x", 1)
    assert f"delete {KIND} ns/wl-0-x-1-b-all-t" in after(world, "delete PodClique ns/wl-0-x-1-b")


# What others do to them.


def test_one_that_was_deleted_comes_back():
    body = sharing("all each/", "t/", "t/", "t")
    world = settled(body)
    before = claims(world)
    for name in before:
        world.api.delete(KIND, name)
    world.settle()
    assert claims(world) == before


def test_one_that_was_deleted_is_made_again_once_the_count_is_known_to_ask_for_it():
    world = settled(sharing(clique="t/"))
    world.api.delete(KIND, "wl-0-a-1-t")
    (made,) = (intent for intent in world.plan().intents if intent.id == f"create {KIND} ns/wl-0-a-1-t")
    assert made.after == ("patch PodClique ns/wl-0-a",)


def hold(world: World, name: str) -> None:
    """Somebody deletes a claim that a pod uses: Kubernetes keeps it until the pod is gone."""
    world.api.patch(KIND, name, {"metadata": {"finalizers": [PROTECTION]}})
    world.api.delete(KIND, name)


def release(world: World, name: str) -> None:
    world.api.patch(KIND, name, {"metadata": {"finalizers": None}})


def test_one_that_is_deleted_in_use_is_waited_for_and_that_is_told():
    world = settled(sharing(clique="t"))
    hold(world, "wl-0-a-all-t")
    plan = world.plan()
    assert (plan.intents, plan.complaints) == ((), ()), "nobody needs it, nothing can be done"
    hands.force_delete(world, min(world.pods("wl-0-a")))
    world.step()
    plan = world.plan()
    assert not [intent.id for intent in plan.intents if intent.id.startswith("create")]
    (complaint,) = plan.complaints
    assert (complaint.clique, complaint.code) == ("wl-0-a", CLIQUE)
    assert "wl-0-a-all-t, which was deleted while others use it" in complaint.words
    release(world, "wl-0-a-all-t")
    world.settle()
    assert len(world.pods("wl-0-a")) == 2
    assert world.plan().complaints == ()


def test_what_is_deleted_for_one_pod_holds_up_no_other():
    world = settled(sharing(clique="t/"))
    hold(world, "wl-0-a-0-t")
    for name in world.pods("wl-0-a"):
        hands.force_delete(world, name)
    world.step()
    world.step()
    assert used(world, "wl-0-a") == [["wl-0-a-1-t"]]


def test_labels_are_mended_and_those_of_others_stay():
    world = settled(sharing(clique="t/"))
    edit = {POD: "7", labels.COMPONENT: "mine", "team": "blue"}
    world.api.patch(KIND, "wl-0-a-1-t", {"metadata": {"labels": edit}})
    (mended,) = world.plan().intents
    assert mended.body["metadata"]["labels"] == {POD: "1", labels.COMPONENT: "resource-claim"}
    world.settle()
    assert world.api.get(KIND, "wl-0-a-1-t")["metadata"]["labels"]["team"] == "blue"


def test_an_orphan_of_ours_is_taken_back_and_what_another_controls_is_left_alone():
    world = settled(sharing(set_="t/", clique="t"))
    world.api.patch(KIND, "wl-0-a-all-t", {"metadata": {"ownerReferences": None}})
    world.settle()
    assert owner(world, "wl-0-a-all-t") == ("PodClique", "wl-0-a")
    foreign = {"uid": "other", "kind": "Other", "name": "o", "apiVersion": "v1", "controller": True}
    world.api.patch(KIND, "wl-0-t", {"metadata": {"ownerReferences": [foreign]}})
    world.scale("PodCliqueSet", "wl", 0)
    world.settle()
    assert claims(world) == {"wl-0-t"}


def test_an_orphan_that_all_share_is_taken_back_by_a_set_that_is_known_to_be_there():
    world = settled(sharing(set_="t"))
    world.api.patch(KIND, "wl-all-t", {"metadata": {"ownerReferences": None}})
    plan = world.plan_set()
    (patch,) = (intent for intent in plan.intents if intent.id == f"patch {KIND} ns/wl-all-t")
    assert patch.after == ("patch PodCliqueSet ns/wl",)
    world.carry_out(plan)
    assert owner(world, "wl-all-t") == ("PodCliqueSet", "wl")


def test_upstreams_claims_are_taken_over_without_a_write():
    """They have the same names, labels and owners."""
    world = settled(sharing("all each/", "all each/", "all each/", "t"))
    world.restart_operator()
    assert world.plan().intents == ()


# What is seen late.


def test_an_old_view_of_a_count_costs_no_claim_and_makes_none():
    world = settled(sharing(group="t/", clique="t/"))
    world.scale("PodClique", "wl-0-a", 1)
    world.scale("PodCliqueScalingGroup", "wl-0-x", 1)
    world.settle()
    before = claims(world)
    for lag in range(1, 8):
        old = {"PodClique": lag, "PodCliqueScalingGroup": lag}
        world.carry_out(replace(world.plan(lag=old), drafts=()))
        assert claims(world) == before, lag
    for kind, name in (("PodClique", "wl-0-a"), ("PodCliqueScalingGroup", "wl-0-x")):
        world.scale(kind, name, 2)
    world.settle()
    before = claims(world)
    for lag in range(1, 8):
        old = {"PodClique": lag, "PodCliqueScalingGroup": lag}
        world.carry_out(replace(world.plan(lag=old), drafts=()))
        assert claims(world) == before, lag


def test_an_old_view_of_claims_makes_none_twice():
    world = settled(sharing("all each/", "t/", "t/", "t"))
    made = [deed.key for deed in world.api.history if deed.verb == "create" and deed.key[0] == KIND]
    for lag in range(1, 12):
        world.carry_out(world.plan(lag={KIND: lag}))
    again = [deed.key for deed in world.api.history if deed.verb == "create" and deed.key[0] == KIND]
    assert again == made


# What is missing.


@pytest.mark.parametrize(
    ("body", "clique", "code", "who"),
    [
        (sharing(set_="ext/"), "", SET, "the set"),
        (sharing(group="ext"), "", GROUP, "x"),
        (sharing(clique="ext/"), "wl-0-a", CLIQUE, "a"),
    ],
)
def test_without_its_template_nothing_is_begun_and_that_is_told_once(body, clique, code, who):
    world = World(body)
    world.settle()
    plan = world.plan()
    assert plan.intents == (), "nothing is tried until it comes"
    assert world.pods("wl-0-a") == {} or code == GROUP
    (complaint,) = plan.complaints
    assert (complaint.clique, complaint.code) == (clique, code)
    assert complaint.words == (
        f"there is no ResourceClaimTemplate ns/ext, which resourceSharing of {who} refers to: create it"
    )
    world.claim_templates = {("ns", "ext"): a_template("ns", "ext")}
    world.settle()
    assert len(world.pods()) == 4
    assert world.plan().complaints == ()
    world.claim_templates = {}
    assert (world.plan().intents, world.plan().complaints) == ((), ()), "nobody needs it any more"


def test_a_gang_is_not_begun_if_one_of_its_cliques_lacks_a_claim():
    world = World(sharing(clique="ext"))
    world.step()
    world.step()
    assert world.api.all("PodGang").keys() == {"wl-0-x-0"}, "the base gang waits, the other one is whole"


def test_the_template_of_what_all_replicas_share_is_told_by_the_set():
    world = World(sharing(set_="ext"))
    world.step()
    assert world.plan().complaints == ()
    (complaint,) = world.plan_set().complaints
    assert (complaint.clique, complaint.code) == ("", SET)
    assert world.pods() == {}


def test_without_sight_of_claims_only_who_shares_waits():
    world, other = World(sharing(clique="t")), World(sharing())
    for each in (world, other):
        each.claims_visible = False
        each.step()
        each.step()
    (complaint,) = world.plan().complaints
    assert complaint.code == SET
    assert "does the cluster serve resource.k8s.io/v1" in complaint.words
    assert not world.pods("wl-0-a")
    assert world.pods("wl-0-x-1-b"), "a gang that shares nothing"
    assert len(other.pods()) == 4
    assert other.plan().complaints == ()
