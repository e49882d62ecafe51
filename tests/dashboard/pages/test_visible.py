"""An explanation says nothing about objects that the viewer may not see."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from grove.cluster_state.model import ClusterState, KindState, UnreadKind
from grove.dashboard.pages.visible import (
    COUNTED,
    NO_NODES,
    SOME_NAMESPACES,
    visible_explanation,
    visible_unread,
)
from grove.dashboard.problems import CANNOT_READ, MAY_NOT_LIST
from grove.dashboard.rights import Rights
from grove.explanation.model import (
    DomainRow,
    Explanation,
    GangExplanation,
    Holder,
    ObjectRef,
    ReasonView,
    Remedy,
)
from grove.explanation.remedies.what_if import holders, remedies
from grove.kube.client.resource import NODES, PODS
from grove.reasons.codes import ReasonCode
from grove.reasons.texts import SUMMARIES
from tests.explanation.clusters import GPU, Cluster, a_gang, a_node, a_user

MINE, SECRET, NODE = "mine", "secret-ns", "node-of-others"
TENANT, BLIND = Rights(frozenset({MINE})), Rights(frozenset({MINE}), nodes=False)
OWN = Rights(frozenset({MINE}), own=True)
ABOUT = ObjectRef("PodGang", "demo-0", MINE)
ALL_ACTIONS = ("uncordon", "repair", "removeTaint", "endPods", "widenLevel", "addNodes")


def a_pod(name: str, namespace: str = SECRET) -> ObjectRef:
    return ObjectRef("Pod", f"{'secret-' * (namespace == SECRET)}{name}", namespace)


def a_holder(name: str, namespace: str = SECRET, amount: int = 4) -> Holder:
    return Holder(
        a_pod(name, namespace), NODE, "GPUs", amount, gang="secret-gang" if namespace == SECRET else ""
    )


def end_pods(*pods: ObjectRef, lower: bool = True) -> Remedy:
    names = ", ".join(f"{each.namespace}/{each.name}" for each in pods)
    return Remedy("endPods", f"end these: {names}", (NODE,), pods, lower_priority=lower)


def an_explanation(**gang: object) -> Explanation:
    found = replace(GangExplanation("demo-0", 2, "rack", (DomainRow("rack r1", 2, 2),)), **gang)
    return Explanation(ABOUT, "0/2 pods ready", True, gangs=(found,))


def gang_seen_by(rights: Rights, **gang: object) -> GangExplanation:
    (found,) = visible_explanation(an_explanation(**gang), rights, ()).gangs
    return found


def test_viewer_of_everything_sees_it_unchanged():
    found = an_explanation(holders=(a_holder("a"),), remedies=(end_pods(a_pod("a")),))
    assert visible_explanation(found, Rights(), ()) == found


def test_gangs_of_other_namespaces_are_counted_together():
    row = DomainRow("rack r1", 8, 8, reserved={f"{SECRET}/a": 2, f"{MINE}/b": 1, f"{SECRET}/c": 3})
    (seen,) = gang_seen_by(TENANT, domains=(row,)).domains
    assert seen.reserved == {"gangs of other namespaces": 5, f"{MINE}/b": 1}


def test_holders_of_other_namespaces_are_one_row():
    found = gang_seen_by(
        TENANT, holders=(a_holder("a"), a_holder("b", MINE, 8), a_holder("c")), more_holders=3
    )
    assert found.holders == (
        a_holder("b", MINE, 8),
        Holder(ObjectRef("Pod", "2 pods of other namespaces"), "", "GPUs", 8),
    )
    assert (found.more_holders, found.domains[0].domain) == (3, "rack r1")


@pytest.mark.parametrize(
    ("pods", "text"),
    [
        ((a_pod("a", MINE), a_pod("b")), "end 2 pods of a lower priority: mine/a, 1 pod of other namespaces"),
        ((a_pod("a"), a_pod("b")), "end 2 pods of a lower priority: 2 pods of other namespaces"),
    ],
)
def test_remedy_counts_pods_of_other_namespaces(pods, text):
    (found,) = gang_seen_by(TENANT, remedies=(end_pods(*pods),)).remedies
    assert (found.text, found.nodes) == (text, (NODE,))
    assert all(each.namespace == MINE for each in found.pods)


def test_remedy_of_own_pods_stays():
    remedy = end_pods(a_pod("a", MINE))
    assert gang_seen_by(TENANT, remedies=(remedy,)).remedies == (remedy,)


def test_remedy_says_whether_the_priority_is_lower():
    (found,) = gang_seen_by(TENANT, remedies=(end_pods(a_pod("a"), lower=False),)).remedies
    assert found.text == "end 1 pod: 1 pod of other namespaces"


@pytest.mark.parametrize(
    ("remedy", "text"),
    [
        (Remedy("addNodes", f"add 3 more nodes like {NODE}", (NODE,), count=3), "add 3 more nodes"),
        (
            Remedy("widenLevel", "require one block instead of one rack"),
            "require one block instead of one rack",
        ),
    ],
)
def test_without_nodes_remedies_name_none(remedy, text):
    found = gang_seen_by(BLIND, remedies=(remedy,), holders=(a_holder("b", MINE),))
    assert [(each.text, each.nodes) for each in found.remedies] == [(text, ())]
    assert (found.domains, found.holders, found.level) == ((), (), "rack")


@pytest.mark.parametrize(
    "remedy",
    [
        Remedy("uncordon", f"uncordon {NODE}", (NODE,)),
        Remedy("repair", f"make ready {NODE}, x", (NODE, "x")),
        Remedy("removeTaint", "tolerate taint k", (NODE,)),
        end_pods(a_pod("a")),
        end_pods(a_pod("a", MINE)),
    ],
    ids=lambda each: each.action,
)
def test_without_nodes_no_remedy_counts_nodes_or_pods(remedy):
    assert gang_seen_by(BLIND, remedies=(remedy,)).remedies == ()


def test_unknown_remedy_is_left_out():
    assert gang_seen_by(BLIND, remedies=(Remedy("other", f"use {NODE}"),)).remedies == ()


def test_without_nodes_found_reasons_say_their_code_only():
    code = ReasonCode.INSUFFICIENT_RESOURCES
    written = ReasonView(code, "no place now: rack r1", "wait")
    computed = ReasonView(code, f"no place now: host {NODE}", f"free {NODE}", ABOUT)
    found = Explanation(ABOUT, "", True, (written, computed))
    assert visible_explanation(found, BLIND, (written,)).reasons[0] == written
    second = visible_explanation(found, BLIND, (written,)).reasons[1]
    assert (second.message, second.about) == (SUMMARIES[code], ABOUT)
    assert NODE not in second.remedy
    assert visible_explanation(found, TENANT, ()).reasons == (written, computed)


def test_unread_lines_name_only_what_is_seen():
    pods = KindState(PODS, undecodable=(f"{MINE}/a", f"{SECRET}/secret-b"))
    state = ClusterState({PODS: pods, NODES: KindState(NODES, undecodable=(NODE,))})
    wrong = tuple(UnreadKind(f"PodCliqueSet {each}/x", "it cannot be planned") for each in (MINE, SECRET))
    lines = visible_unread(an_explanation(holders=(a_holder("a"),)), state, wrong, TENANT)
    assert lines == (
        COUNTED,
        f"pods: cannot be decoded: {MINE}/a",
        f"PodCliqueSet {MINE}/x: it cannot be planned",
    )
    assert visible_unread(an_explanation(), ClusterState({}), (), BLIND) == (NO_NODES,)
    without_nodes = visible_unread(an_explanation(), state, wrong, Rights(nodes=False))
    assert "objects that you may not see and that cannot be decoded: 1" in without_nodes
    everything = visible_unread(an_explanation(), state, wrong, Rights())
    assert f"nodes: cannot be decoded: {NODE}" in everything


@pytest.mark.parametrize(
    ("kind", "rights", "line"),
    [
        (KindState(PODS, problem=f"no right in {SECRET} (403)", namespace=SECRET), TENANT, MAY_NOT_LIST),
        (
            KindState(PODS, problem=f"no right in {MINE} (403)", namespace=MINE),
            TENANT,
            f"no right in {MINE} (403)",
        ),
        (KindState(PODS, problem=f"{SECRET} is away (500)"), TENANT, CANNOT_READ),
        (KindState(PODS, problem=f"{SECRET} is away (500)"), OWN, f"{SECRET} is away (500)"),
        (KindState(PODS, namespace=f"{MINE}, {SECRET}"), TENANT, SOME_NAMESPACES),
        (KindState(PODS, namespace=MINE), TENANT, f"only those of namespace {MINE} are known"),
        (
            KindState(PODS, namespace=f"{MINE}, {SECRET}"),
            Rights(),
            f"only those of namespace {MINE}, {SECRET} are known",
        ),
    ],
)
def test_problems_name_only_namespaces_that_are_seen(kind, rights, line):
    assert visible_unread(an_explanation(), ClusterState({PODS: kind}), (), rights) == (f"pods: {line}",)


pods_of_all = st.lists(
    st.builds(a_pod, st.sampled_from("abcdef"), st.sampled_from((MINE, SECRET))), max_size=6
)
any_remedy = st.one_of(
    st.builds(lambda pods: end_pods(*pods), pods_of_all),
    st.builds(
        lambda action, count: Remedy(action, f"{action} {NODE}", (NODE,), count=count),
        st.sampled_from(ALL_ACTIONS),
        st.integers(0, 5),
    ),
)
any_gang = st.builds(
    lambda pods, found: GangExplanation(
        "demo-0", 2, "rack", (DomainRow(f"host {NODE}", 1, 1),), 0,
        tuple(replace(a_holder("x", pod.namespace), pod=pod) for pod in pods),
        0, tuple(each for each in found if each.action != "widenLevel"),
    ),
    pods_of_all,
    st.lists(any_remedy, max_size=4),
)  # fmt: skip


@given(st.lists(any_gang, max_size=3), st.booleans())
def test_no_hidden_name_is_in_the_answer(gangs, nodes):
    rights = Rights(frozenset({MINE}), nodes=nodes)
    found = Explanation(ABOUT, "", True, gangs=tuple(gangs))
    unread = visible_unread(found, ClusterState({}), (), rights)
    text = msgspec.json.encode((visible_explanation(found, rights, ()), unread)).decode()
    assert "secret" not in text
    assert nodes or NODE not in text


def test_every_remedy_of_the_solver_is_known_here():
    cluster = Cluster(
        [
            a_node("n1"),
            a_node("n2", unschedulable=True),
            a_node("n3", "r2", ready=False),
            a_node("n4", taint="t"),
        ],
        {"n1": [a_user("low-1", 8, -1)]},
    )
    problem = a_gang(1)
    answer = cluster.refused(problem)
    found = tuple(remedies(cluster.index, problem, answer, 0, cluster.pods_on))
    assert {each.action for each in found} <= set(ALL_ACTIONS)
    held = tuple(holders(cluster.index, (), GPU, cluster.pods_on))
    blind = gang_seen_by(Rights(frozenset(), nodes=False), remedies=found, holders=held)
    assert len(gang_seen_by(TENANT, remedies=found).remedies) == len(found) > 2
    assert {each.action for each in blind.remedies} <= {"widenLevel", "addNodes"}
    text = msgspec.json.encode(blind).decode()
    assert not any(name in text for name in ("n1", "n2", "n3", "n4", "ml/", "low-"))
