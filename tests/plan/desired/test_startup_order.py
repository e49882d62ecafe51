"""The cliques that a pod waits for, and the init container that waits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grove.api.error_codes import ErrorCode
from grove.plan.desired.expand import expand
from grove.plan.desired.startup_order import is_ordered, startup_parents
from grove.reasons.codes import ReasonCode
from tests.plan.builders import Body, a_set, read_set
from tests.plan.simulator.actors import run_all
from tests.plan.simulator.simulator import Simulator

IN_ORDER = {"cliqueStartupType": "CliqueStartupTypeInOrder"}
EXPLICIT = {"cliqueStartupType": "CliqueStartupTypeExplicit"}


def explicit(cliques: str, groups: str = "", **after: str) -> Body:
    body = a_set(cliques, groups, **EXPLICIT)
    for clique in body["spec"]["template"]["cliques"]:
        clique["spec"]["startsAfter"] = after.get(clique["name"], "").split()
    return body


def waits(body: Body, **counts: int) -> dict[str, dict[str, int]]:
    """By clique, what its pods wait for; `counts` are those of scaled cliques and groups."""
    workload = read_set(body)
    named = {f"wl-0-{name.replace('_', '-')}": count for name, count in counts.items()}
    layout = expand(workload, 0, named, named)
    found = {clique.name: startup_parents(workload, 0, layout, clique) for clique in layout.cliques}
    return {
        name.removeprefix("wl-0-"): {parent.removeprefix("wl-0-"): count for parent, count in waits.items()}
        for name, waits in found.items()
        if waits
    }


@pytest.mark.parametrize(
    ("body", "ordered", "expected"),
    [
        (a_set("a b"), False, {}),
        (a_set("a", **IN_ORDER), False, {}),
        (a_set("a:2/1 b:3 c", **IN_ORDER), True, {"b": {"a": 1}, "c": {"b": 3}}),
        (explicit("a b"), False, {}),
        (explicit("a b c:2", c="a b"), True, {"c": {"a": 1, "b": 1}}),
        (explicit("a b c:2", a="c", b="c c"), True, {"a": {"c": 2}, "b": {"c": 2}}),
        (
            a_set("a b:2/1 c", "x:3/2=b,c", **IN_ORDER),
            True,
            {
                "x-0-b": {"a": 1},
                "x-1-b": {"a": 1},
                "x-0-c": {"x-0-b": 1, "x-1-b": 1},
                "x-1-c": {"x-0-b": 1, "x-1-b": 1},
                "x-2-c": {"x-2-b": 1},
            },
        ),
    ],
)
def test_startup_parents_by_startup_type(body, ordered, expected):
    assert is_ordered(read_set(body)) == ordered
    assert waits(body) == expected


def test_starts_after_ignored_unless_startup_type_explicit():
    body = explicit("a b", b="a")
    del body["spec"]["template"]["cliqueStartupType"]
    assert (is_ordered(read_set(body)), waits(body)) == (False, {})


class TestPartsScaledToZero:
    """Parts scaled to 0 have left the gang: their parents take their place."""

    def test_clique_scaled_to_0_is_replaced_by_its_parents(self):
        body = a_set("a b:2/2 c", **IN_ORDER)
        assert waits(body, b=0) == {"b": {"a": 1}, "c": {"a": 1}}
        assert waits(body, a=0) == {"c": {"b": 2}}

    def test_group_scaled_to_0_is_replaced_by_its_parents(self):
        body = a_set("a b c d", "x:1/1=b,c", **IN_ORDER)
        assert waits(body) == {"x-0-b": {"a": 1}, "x-0-c": {"x-0-b": 1}, "d": {"x-0-c": 1}}
        assert waits(body, x=0) == {"d": {"a": 1}}

    def test_starts_after_of_clique_keeps_scaled_to_0_parents(self):
        sim = Simulator(a_set("a b:2/2 c", **IN_ORDER))
        sim.settle()
        sim.scale("PodClique", "wl-0-b", 0)
        sim.settle()
        assert sim.api.get("PodClique", "wl-0-c")["spec"]["startsAfter"] == ["wl-0-b"]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (explicit("a b", a="b", b="a"), {"a": {"b": 1}, "b": {"a": 1}}),
        (explicit("a b", b="nobody"), {"b": {"nobody": 1}}),
        (explicit("a", a="a"), {}),
    ],
)
def test_unsatisfiable_order_is_applied_as_written(body, expected):
    assert waits(body) == expected
    sim = Simulator(body)
    sim.settle()
    run_all(sim)
    sim.settle()


@given(st.dictionaries(st.sampled_from("abcd"), st.lists(st.sampled_from("abcde"), max_size=4)), st.data())
def test_any_order_terminates_and_no_clique_awaits_itself(after, data):
    body = explicit("a b:2 c d", "x:2/1=c,d", **{name: " ".join(of) for name, of in after.items()})
    counts = data.draw(st.dictionaries(st.sampled_from(["a", "b", "x"]), st.just(0)))
    for clique, parents in waits(body, **counts).items():
        assert clique not in parents


def a_waiting_pod(sim: Simulator) -> Body:
    (name,) = sim.pods("wl-0-b")
    return sim.api.get("Pod", name)["spec"]


def test_init_container_matches_the_contract():
    body = a_set("a:2/1 b", **IN_ORDER)
    own = body["spec"]["template"]["cliques"][1]["spec"]["podSpec"]
    own["initContainers"] = [{"name": "mine", "image": "i"}]
    own["volumes"] = [{"name": "data", "emptyDir": {}}]
    sim = Simulator(body)
    sim.settle()
    spec = a_waiting_pod(sim)
    assert [container["name"] for container in spec["initContainers"]] == ["mine", "grove-initc"]
    assert spec["initContainers"][1] == {
        "name": "grove-initc",
        "image": "example.com/initc:1",
        "args": ["--podcliques=wl-0-a:1"],
        "volumeMounts": [
            {
                "name": "sa-token-secret-vol",
                "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
                "readOnly": True,
            },
            {"name": "pod-info-vol", "mountPath": "/var/grove/pod-info", "readOnly": True},
        ],
    }
    gang = {"path": "podgangname", "fieldRef": {"fieldPath": "metadata.labels['grove.io/podgang']"}}
    namespace = {"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}
    assert spec["volumes"] == [
        {"name": "data", "emptyDir": {}},
        {"name": "sa-token-secret-vol", "secret": {"secretName": "wl-ic-sat", "defaultMode": 420}},
        {"name": "pod-info-vol", "downwardAPI": {"items": [namespace, gang], "defaultMode": 420}},
    ]
    assert "serviceAccountName" not in spec
    clique = sim.api.get("PodClique", "wl-0-b")["spec"]["podSpec"]
    assert clique["initContainers"] == own["initContainers"], "the clique keeps what was written"


def test_pod_without_parents_has_no_init_container():
    sim = Simulator(a_set("a b", **IN_ORDER))
    sim.settle()
    (name,) = sim.pods("wl-0-a")
    spec = sim.api.get("Pod", name)["spec"]
    assert ("initContainers" in spec, "volumes" in spec) == (False, False)


class TestMissingPrerequisites:
    """A gang is not created before all of its pods can be."""

    def test_gang_waits_for_the_token(self):
        sim = Simulator(a_set("a b", **IN_ORDER))
        binding, sim.binding = sim.binding, None
        sim.settle()
        assert (list(sim.api.objects("PodGang")), sim.pods()) == ([], {})
        assert len(list(sim.api.objects("PodClique"))) == 2
        assert sim.plan().errors == ()
        sim.binding = binding
        sim.settle()
        assert len(sim.pods()) == 2

    def test_existing_gang_without_token_delays_only_waiting_pods(self):
        sim = Simulator(a_set("a b", **IN_ORDER))
        sim.settle()
        sim.binding = None
        before = sim.pods()
        for name in before:
            sim.api.vanish("Pod", name, by="user")
        sim.settle()
        assert (len(sim.pods("wl-0-a")), len(sim.pods("wl-0-b"))) == (1, 0)

    def test_missing_image_is_reported_on_waiting_cliques(self):
        sim = Simulator(a_set("a b", **IN_ORDER))
        sim.init_image = ""
        sim.settle()
        (user_error,) = sim.plan().errors
        assert user_error.regarding is not None
        assert (user_error.regarding.name, user_error.code) == ("wl-0-b", ErrorCode.INIT_IMAGE_MISSING)
        assert "GROVE_INIT_CONTAINER_IMAGE" in user_error.message
        assert sim.pods() == {}

    def test_disabled_order_is_reported_and_starts_no_pod(self):
        sim = Simulator(a_set("a b", **IN_ORDER))
        sim.start_order = False
        sim.settle()
        (user_error,) = sim.plan().errors
        assert user_error.regarding is not None
        assert (user_error.regarding.name, user_error.code) == ("wl-0-b", ErrorCode.START_ORDER_DISABLED)
        assert "set startOrder.enabled in its configuration" in user_error.message
        assert sim.pods() == {}
        assert sim.plan().report.waiting.first.code == ReasonCode.START_ORDER_DISABLED

    def test_order_that_is_disabled_later_keeps_running_pods(self):
        sim = Simulator(a_set("a b", **IN_ORDER))
        sim.settle()
        before = sim.pods()
        sim.start_order = False
        sim.settle()
        assert sim.pods() == before
        for name in before:
            sim.api.vanish("Pod", name, by="user")
        sim.settle()
        assert (len(sim.pods("wl-0-a")), len(sim.pods("wl-0-b"))) == (1, 0)

    def test_set_without_order_needs_neither_image_nor_token(self):
        sim = Simulator(a_set("a b"))
        sim.binding, sim.init_image, sim.start_order = None, "", False
        sim.settle()
        assert (len(sim.pods()), sim.plan().errors) == (2, ())


def test_replaced_pod_recreates_token_secret_new_gang_does_not():
    sim = Simulator(a_set("a b", **IN_ORDER))
    assert not any(intent.target.kind == "Secret" for intent in sim.plan().intents)
    sim.settle()
    (name,) = sim.pods("wl-0-b")
    sim.api.vanish("Pod", name, by="user")
    sim.step()
    secrets = [intent for intent in sim.plan().intents if intent.target.kind == "Secret"]
    assert all(secret.may_exist and secret.write_only for secret in secrets)
    sim.settle()
    assert sim.api.get("Secret", "wl-ic-sat")["type"] == "kubernetes.io/service-account-token"
