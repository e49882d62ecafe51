"""What a plan says about sets that are created, updated and scaled."""

from __future__ import annotations

import asyncio
from copy import deepcopy
from random import Random

import pytest
from msgspec.json import decode
from msgspec.structs import replace

from grove import timing
from grove.api.naming.external_keys import VOLCANO_QUEUE
from grove.api.types.podcliqueset import PodCliqueSet
from grove.cluster_state.model import KindState
from grove.cluster_state.snapshot_file import decode as decode_snapshot
from grove.cluster_state.snapshot_file import encode
from grove.dry_run.admission import Admitted
from grove.dry_run.documents import Document, InputError, read_documents
from grove.dry_run.model import AdmissionVerdict, Verdict, WorkloadPlan
from grove.dry_run.operator import DryOperator
from grove.dry_run.planning import Planner
from grove.kube.client.resource import NODES, PODS, PRIORITY_CLASSES, SERVICES
from grove.local.cluster.cluster_shape import RACK
from grove.operator.keys import ReplicaKey
from grove.rules.podcliqueset.defaults import default_set
from tests.cluster_state.states import SETS, shaped, unreadable, with_objects
from tests.dry_run.plans import NOW, SETUP, applied, documents_report, plan, report, with_gpus
from tests.dry_run.random_workloads import foreign_pod, random_set, random_use
from tests.plan.builders import a_set
from tests.shared import ROOT

PACKED = {"topologyName": "t", "pack": {"required": "rack"}}


def counts(found: WorkloadPlan) -> dict[str, tuple[int, int, int]]:
    return {each.kind: (len(each.created), len(each.changed), len(each.deleted)) for each in found.objects}


def created(**kinds: int) -> dict[str, tuple[int, int, int]]:
    return {kind: (count, 0, 0) for kind, count in kinds.items()}


def changed(body):
    """The same set with another image."""
    other = deepcopy(body)
    for clique in other["spec"]["template"]["cliques"]:
        clique["spec"]["podSpec"]["containers"][0]["image"] = "example.com/serve:2"
    return other


def test_new_set_has_its_objects_and_domains() -> None:
    body = with_gpus(a_set("a:4", topologyConstraint=PACKED), 4)
    found = plan(shaped("1x1x2x2", 8, "t"), body)
    assert (found.verdict, found.action) == (Verdict.FITS, "create")
    assert counts(found) == {
        "Service": (1, 0, 0),
        "PodClique": (1, 0, 0),
        "PodGang": (1, 0, 0),
        "Pod": (4, 0, 0),
    }
    (gang,) = found.gangs
    assert (gang.units[0].domain, gang.units[0].level, gang.units[0].nodes) == (
        ("z0", "z0-b0", "z0-b0-r0"),
        RACK,
        2,
    )


def test_gang_larger_than_the_cluster_does_not_fit() -> None:
    found = plan(shaped("1x1x2x2", 8), with_gpus(a_set("a:5"), 8))
    assert found.verdict is Verdict.DOES_NOT_FIT
    (gang,) = found.gangs
    assert gang.message.startswith("no place even if the cluster were empty")
    assert [(each.reason, each.have, each.need) for each in gang.missing] == [
        ("TooLarge", 4, 5),
        ("Insufficient", 32, 40),
    ]


def test_scaled_gang_does_not_fit_beside_its_base() -> None:
    body = with_gpus(a_set("a:1 b:2", "x:2/1=b", topologyConstraint=PACKED), 8)
    found = plan(shaped("1x1x2x4", 8, "t"), body)
    assert found.verdict is Verdict.DOES_NOT_FIT
    assert [(each.name, each.placed) for each in found.gangs] == [("wl-0", True), ("wl-0-x-0", False)]


def test_gang_depends_on_where_the_scheduler_puts_others() -> None:
    """The base gangs have room to spare: where their pods go is known only once they are bound."""
    random, state = Random(60), shaped("1x2x2x4", 8, "local")
    names = sorted(decode(item)["metadata"]["name"] for item in state.kind(NODES).items)
    others = [foreign_pod(f"p{number}", *each) for number, each in enumerate(random_use(random, names))]
    found = plan(with_objects(state, PODS, *others), random_set(random, "wl"))
    assert [(gang.name, gang.placed, gang.depends) for gang in found.gangs] == [
        ("wl-0", True, False),
        ("wl-0-x-0", True, True),
        ("wl-1", True, False),
        ("wl-1-x-0", True, True),
    ]
    assert found.verdict is Verdict.UNKNOWN


def test_scaled_gangs_of_refused_base_are_not_refused() -> None:
    found = plan(shaped("1x1x1x1", 8), with_gpus(a_set("a:2 b:2", "x:2/1=b"), 8))
    base, scaled = found.gangs
    assert base.refused
    assert (scaled.placed, scaled.refused, scaled.message) == (False, False, "waits for base gang wl-0")


def test_second_set_of_an_input_sees_the_first() -> None:
    first, second = (with_gpus(a_set("a:3", name=name), 8) for name in ("first", "second"))
    found = report(shaped("1x1x1x4", 8), first, second)
    assert [each.verdict for each in found.plans] == [Verdict.FITS, Verdict.DOES_NOT_FIT]
    assert found.verdict is Verdict.DOES_NOT_FIT


def test_existing_set_is_unchanged() -> None:
    body = with_gpus(a_set("a:2 b:2", "x:2/1=b"), 2)
    found = plan(applied(shaped(), body), body)
    assert (found.action, found.objects, found.gangs, found.update) == ("unchanged", (), (), None)


def test_existing_set_of_a_snapshot_is_unchanged() -> None:
    """The pods of its group have environment variables that the operator adds."""
    body = with_gpus(a_set("a:2 b:2", "x:2/1=b"), 2)
    state = decode_snapshot(encode(applied(shaped(), body)), "cluster.json")
    (found,) = documents_report(state, [Document(PodCliqueSet.KIND, body)], redacted=True).plans
    assert (found.action, found.objects, found.gangs, found.update) == ("unchanged", (), (), None)


def test_update_names_its_units_in_order() -> None:
    body = with_gpus(a_set("a:2 b:2", "x:2/1=b", replicas=2), 2)
    state = applied(shaped(), body)
    found = plan(state, changed(body))
    assert found.action == "update"
    assert found.update is not None
    assert found.update.complete
    assert (found.update.replicas, found.update.lowest_available) == (2, 1)
    units = found.update.units
    assert len(units) == 2 * (2 + 2)
    first, second = units[:4], units[4:]
    assert all(each.startswith("wl-0-") for each in first)
    assert all(each.startswith("wl-1-") for each in second)
    assert {"wl-0-x-0", "wl-0-x-1"} < set(first)
    assert counts(found)["Pod"] == (12, 0, 12)
    assert found.verdict is Verdict.FITS


def test_scale_out_places_only_the_new_replica() -> None:
    body = with_gpus(a_set("a:2"), 8)
    state = applied(shaped("1x1x1x4"), body)
    body["spec"]["replicas"] = 2
    found = plan(state, body)
    assert (found.verdict, counts(found)["Pod"], found.update) == (Verdict.FITS, (2, 0, 0), None)
    assert [gang.name for gang in found.gangs] == ["wl-1"]
    body["spec"]["replicas"] = 3
    assert plan(state, body).verdict is Verdict.DOES_NOT_FIT


def test_scale_in_deletes_the_objects_of_a_replica() -> None:
    body = with_gpus(a_set("a:2", replicas=2), 2)
    state = applied(shaped(), body)
    body["spec"]["replicas"] = 1
    found = plan(state, body)
    deleted = {"Pod": 2, "Service": 1, "PodClique": 1, "PodGang": 1}
    assert counts(found) == {kind: (0, 0, count) for kind, count in deleted.items()}


@pytest.mark.parametrize(("gpus", "most"), [(8, 2), (4, 4), (1, 16)])
def test_largest_size_is_found(gpus, most) -> None:
    assert plan(shaped("1x1x1x4"), with_gpus(a_set("a:2"), gpus), largest=True).max_replicas == most


def test_largest_size_counts_running_replicas() -> None:
    body = with_gpus(a_set("a:2"), 8)
    assert plan(applied(shaped("1x1x1x4"), body), body, largest=True).max_replicas == 2


def test_pods_of_one_namespace_only_prove_no_place() -> None:
    state = shaped("1x1x1x4")
    limited = unreadable(state, PODS, "no right (403 Forbidden)")
    assert plan(limited, with_gpus(a_set("a:2"), 8)).verdict is Verdict.UNKNOWN
    assert report(limited, with_gpus(a_set("a:2"), 8)).unread == ("pods: no right (403 Forbidden)",)
    assert plan(unreadable(state, NODES, "no right"), a_set("a:2")).verdict is Verdict.UNKNOWN


def test_undecodable_objects_leave_a_fit_unknown() -> None:
    state = shaped("1x1x1x4")
    fits, large = with_gpus(a_set("a:2"), 8), with_gpus(a_set("a:5"), 8)
    wrong = {"metadata": {"name": "x", "namespace": "ns"}, "spec": {"nodeName": 5}}
    with_pod = with_objects(state, PODS, wrong)
    assert report(with_pod, fits).unread == ("pods: cannot be decoded: ns/x",)
    assert plan(with_pod, fits).verdict is Verdict.UNKNOWN
    assert plan(with_pod, large).verdict is Verdict.DOES_NOT_FIT
    with_node = with_objects(state, NODES, {"metadata": {"name": "x"}, "status": {"allocatable": []}})
    assert plan(with_node, fits).verdict is Verdict.UNKNOWN
    assert plan(with_node, large).verdict is Verdict.UNKNOWN


def test_undecodable_objects_that_use_no_room_do_not_matter() -> None:
    state = shaped("1x1x1x4")
    state = replace(state, kinds={**state.kinds, SERVICES: KindState(SERVICES, undecodable=("ns/x",))})
    assert report(state, with_gpus(a_set("a:2"), 8)).unread == ("services: cannot be decoded: ns/x",)
    assert plan(state, with_gpus(a_set("a:2"), 8)).verdict is Verdict.FITS


def test_gang_that_waits_competes_by_its_age() -> None:
    """It waits for two of four nodes, of which it needs three."""
    others = [foreign_pod(f"p{number}", f"z0-b0-r0-h{number}", 8) for number in range(2)]
    state = with_objects(shaped("1x1x1x4"), PODS, *others)
    state = applied(state, with_gpus(a_set("a:3", name="waiting"), 8))
    assert plan(state, with_gpus(a_set("a:2"), 8)).verdict is Verdict.FITS
    freed = with_objects(without_pods(state, "p0"), PODS)
    assert plan(freed, with_gpus(a_set("a:1"), 8)).verdict is Verdict.DOES_NOT_FIT


def without_pods(state, *names: str):
    known = state.kind(PODS)
    kept = tuple(item for item in known.items if decode(item)["metadata"]["name"] not in names)
    return replace(state, kinds={**state.kinds, PODS: replace(known, items=kept)})


def test_largest_size_leaves_room_for_gangs_that_wait() -> None:
    others = [foreign_pod(f"p{number}", f"z0-b0-r0-h{number}", 8) for number in range(2)]
    state = with_objects(shaped("1x1x1x4"), PODS, *others)
    waiting = applied(state, with_gpus(a_set("a:3", name="waiting"), 8))
    free, contended = (without_pods(each, "p0", "p1") for each in (state, waiting))
    body = with_gpus(a_set("a:1"), 8)
    assert plan(free, body, largest=True).max_replicas == 4
    assert plan(contended, body, largest=True).max_replicas == 1


def test_replicas_that_wait_are_planned_once(monkeypatch) -> None:
    """Also for the largest size, and for the second run of a set whose gangs depend on others."""
    planned: list[ReplicaKey] = []
    attempt = DryOperator.attempt

    def counted(operator, key, compute):
        planned.append(key)
        return attempt(operator, key, compute)

    monkeypatch.setattr(DryOperator, "attempt", counted)
    other, body = (
        with_gpus(each, 1) for each in (a_set("a:1", name="o", replicas=20), a_set("a:1 b:1", "x:2/1=b"))
    )
    state = with_objects(shaped("1x1x1x4"), SETS, default_set(other))
    again = plan(state, body, largest=True)
    assert (len(planned), len(set(planned))) == (40, 20)
    planned.clear()
    monkeypatch.setattr(timing, "SPREAD_WORK", 4 * 20 - 1)
    assert plan(state, body, largest=True) == again
    assert (len(planned), again.max_replicas) == (20, 4)


def test_gang_of_higher_priority_takes_its_nodes_first() -> None:
    urgent = {"metadata": {"name": "urgent"}, "value": 1000}
    state = with_objects(shaped("1x1x1x4"), PRIORITY_CLASSES, urgent)
    others = [foreign_pod(f"p{number}", f"z0-b0-r0-h{number}", 8) for number in range(2)]
    waiting = with_gpus(a_set("a:3", name="waiting", priorityClassName="urgent"), 8)
    state = applied(with_objects(state, PODS, *others), waiting)
    assert plan(state, with_gpus(a_set("a:2"), 8)).verdict is Verdict.DOES_NOT_FIT


def test_missing_priority_class_is_rejected() -> None:
    urgent = {"metadata": {"name": "urgent"}, "value": 1000}
    state = with_objects(shaped(), PRIORITY_CLASSES, urgent)
    assert plan(state, a_set("a:1", priorityClassName="urgent")).verdict is Verdict.FITS
    found = plan(state, a_set("a:1", priorityClassName="other"))
    assert found.verdict is Verdict.REJECTED
    assert found.admission.message.startswith('spec.template.priorityClassName: Not found: "other"')


@pytest.mark.parametrize("state", [shaped(), unreadable(shaped(), PRIORITY_CLASSES, "no right")])
def test_unknown_priority_class_is_noted(state) -> None:
    found = plan(state, a_set("a:1", priorityClassName="urgent"))
    assert (found.verdict, found.notes) == (
        Verdict.FITS,
        ("PriorityClass urgent is not known here: planned with priority 0",),
    )


def test_volcano_queue_is_no_priority_class() -> None:
    """A queue is looked up by the webhook as well, and not read for a plan."""
    body = a_set("a:1")
    body["metadata"]["annotations"] = {VOLCANO_QUEUE: "research"}
    body["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["schedulerName"] = "volcano"
    found = plan(with_objects(shaped(), PRIORITY_CLASSES), body)
    assert found.admission.allowed, found.admission.message


def test_bound_gang_keeps_its_nodes() -> None:
    state = applied(shaped("1x1x1x4"), with_gpus(a_set("a:3", name="other"), 8))
    assert plan(state, with_gpus(a_set("a:2"), 8)).verdict is Verdict.DOES_NOT_FIT
    assert plan(state, with_gpus(a_set("a:1"), 8)).verdict is Verdict.FITS


def nominated(pod, node: str):
    """A pod of ours that waits for its release, nominated to a node; pods of others as they are."""
    if not pod["metadata"].get("labels"):
        return pod
    spec = {key: value for key, value in pod["spec"].items() if key != "nodeName"}
    gates = [{"name": "grove.io/podgang-pending-creation"}]
    return {**pod, "spec": {**spec, "schedulingGates": gates}, "status": {"nominatedNodeName": node}}


@pytest.mark.parametrize(("host", "verdict"), [("h0", Verdict.FITS), ("h3", Verdict.DOES_NOT_FIT)])
def test_nominated_gang_keeps_its_nodes(host, verdict) -> None:
    """It is nominated to other nodes than an operator would choose now."""
    state = applied(shaped("1x1x1x4"), with_gpus(a_set("a:3", name="other"), 8))
    known = state.kind(PODS)
    pods = [nominated(decode(item), f"z0-b0-r0-h{3 - n}") for n, item in enumerate(known.items)]
    state = with_objects(replace(state, kinds={**state.kinds, PODS: replace(known, items=())}), PODS, *pods)
    body = with_gpus(a_set("a:1"), 8)
    selector = {"kubernetes.io/hostname": f"z0-b0-r0-{host}"}
    body["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["nodeSelector"] = selector
    assert plan(state, body).verdict is verdict


def test_set_of_another_scheduler_is_noted() -> None:
    body = a_set("a:2")
    body["metadata"]["labels"] = {"kai.scheduler/queue": "research"}
    body["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["schedulerName"] = "kai-scheduler"
    assert plan(shaped(), body).notes == (
        "kai-scheduler chooses the nodes itself: this is what the solver of grove finds",
    )


def test_invalid_set_is_rejected_by_our_rules() -> None:
    body = a_set("a:2")
    body["spec"]["template"]["cliques"][0]["spec"]["minAvailable"] = 3
    found = plan(shaped(), body)
    assert (found.verdict, found.action, found.gangs) == (Verdict.REJECTED, "rejected", ())
    assert "minAvailable" in found.admission.message


def test_fallback_is_tried_after_its_time() -> None:
    fallbacks = [{"packDomain": "block", "after": "90s"}]
    constraint = {**PACKED, "fallbacks": fallbacks}
    found = plan(shaped("1x1x2x2", 8, "t"), with_gpus(a_set("a:3", topologyConstraint=constraint), 8))
    assert found.verdict is Verdict.FITS
    (gang,) = found.gangs
    assert (gang.fallback, gang.after, gang.units[0].domain) == (1, 90.0, ("z0", "z0-b0"))


def manifest(path: str):
    return read_documents((ROOT / path).read_text(), path, "ns")


def test_fabric_domain_is_created_and_holds_a_pod_per_node() -> None:
    async def run(shape: str) -> WorkloadPlan:
        documents = manifest("docs/examples/nvlink-by-name.yaml")
        return (await Planner(shaped(shape), SETUP, NOW).plan(documents)).plans[0]

    found = asyncio.run(run("1x1x1x2"))
    assert (found.fabric_domains, found.verdict) == (("decoders",), Verdict.FITS)
    assert counts(found)["ComputeDomain"] == (1, 0, 0)
    assert asyncio.run(run("1x1x1x1")).verdict is Verdict.DOES_NOT_FIT


@pytest.mark.parametrize("amount", ["1e1.5", "1e999999"])
def test_set_that_cannot_be_planned_hides_no_other(amount) -> None:
    wrong = with_gpus(a_set("a:1", name="wrong"), 1)
    wrong["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["containers"][0]["resources"]["limits"] = {
        "nvidia.com/gpu": amount
    }
    found = report(with_objects(shaped(), SETS, default_set(wrong)), a_set("a:1"))
    assert found.verdict is Verdict.FITS
    (line,) = found.unread
    assert line.startswith(f"PodCliqueSet ns/wrong: it cannot be planned ('{amount}' is not a quantity")


def test_set_that_the_server_admits_wrongly_is_one_line() -> None:
    body = with_gpus(a_set("a:1"), 1)
    body["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["overhead"] = {"cpu": "1e1.5"}

    async def admit(document: Document, _stored: object) -> Admitted:
        return Admitted(default_set(document.body), AdmissionVerdict(True, "the API server"))

    async def run() -> None:
        planner = Planner(shaped(), SETUP, NOW, admit)
        await planner.plan([Document(PodCliqueSet.KIND, body)])

    with pytest.raises(
        InputError, match=r"^PodCliqueSet ns/wl cannot be planned \('1e1.5' is not a quantity"
    ):
        asyncio.run(run())
