"""Fabric domains of a replica: claims in pods, labels, and which cliques wait (I, J, L, X)."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from grove.api.intents import Create
from grove.api.meta import ObjectMeta
from grove.fabrics.provider import Domain
from grove.fabrics.requirements import domain_requirements
from grove.plan.desired.template_hash import generation_hash
from grove.plan.fabric.resolution import ObservedDomain, resolve_replica
from grove.plan.fabric.status import with_domains
from grove.plan.replica import plan_replica
from tests.fabrics.builders import BOTH
from tests.plan.builders import a_clique, a_set, read_set
from tests.plan.simulator.simulator import Simulator

GPUS = {"limits": {"nvidia.com/gpu": "8"}}
CLAIM = {"name": "mnnvl-claim", "resourceClaimTemplateName": "wl-0"}


def gpu_clique(word, **annotations):
    containers = [
        {"name": "model", "image": "m", "resources": GPUS},
        {"name": "sidecar", "image": "s"},
    ]
    return {**a_clique(word, containers=containers), "annotations": annotations}


def workload(*cliques, auto="enabled", groups=""):
    body = a_set("router:1", groups)
    body["spec"]["template"]["cliques"] += list(cliques)
    if auto:
        body["metadata"]["annotations"] = {"grove.io/auto-mnnvl": auto}
    return body


def domain(name, **spec):
    body = {
        "metadata": {
            "name": name,
            "namespace": "ns",
            "uid": f"uid-{name}",
            "labels": {
                "app.kubernetes.io/managed-by": "grove-operator",
                "app.kubernetes.io/component": "pcs-computedomain",
                "app.kubernetes.io/part-of": "wl",
                "grove.io/computedomain-mode": "auto",
            },
        },
        "spec": {"channel": {"resourceClaimTemplate": {"name": name}}, **spec},
    }
    return msgspec.json.decode(msgspec.json.encode(body), type=Domain)


def owned(found, snapshot):
    reference = {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "name": "wl",
        "uid": snapshot.workload.metadata.uid,
        "controller": True,
    }
    metadata = msgspec.to_builtins(found.metadata) | {"ownerReferences": [reference]}
    return msgspec.convert({"metadata": metadata, "spec": found.spec}, Domain)


def resolved(snapshot, *domains, **observed):
    """The snapshot with these domains of NVIDIA, and with what else is `observed` about each."""
    found = {domain.metadata.name: domain for domain in domains}

    def observe(provider, name):
        return ObservedDomain(found=found.get(name) if provider.vendor == "nvidia" else None, **observed)

    counts = {
        group.name: group.replicas for group in snapshot.workload.spec.template.pod_clique_scaling_groups
    }
    requirements = domain_requirements(snapshot.workload, BOTH)
    return replace(
        snapshot,
        domains=resolve_replica(
            snapshot.workload, requirements, BOTH, 0, lambda group: range(counts[group]), observe
        ),
    )


def plan(body, *domains, ours=True, **observed):
    snapshot = Simulator(body).snapshot()
    seen = [owned(found, snapshot) if ours else found for found in domains]
    return plan_replica(resolved(snapshot, *seen, **observed), 0.0)


def bodies(planned, kind):
    return {
        intent.body["metadata"]["labels"].get("grove.io/clique", intent.target.name): intent.body
        for intent in planned.intents
        if isinstance(intent, Create) and intent.target.kind == kind
    }


def test_auto_claims_only_in_gpu_containers():
    planned = plan(workload(gpu_clique("worker:1"), groups=""), domain("wl-0"))
    cliques, pods = bodies(planned, "PodClique"), bodies(planned, "Pod")
    assert set(pods) == {"router", "worker"}
    for spec in (cliques["worker"]["spec"]["podSpec"], pods["worker"]["spec"]):
        assert spec["resourceClaims"] == [CLAIM]
        model, sidecar = spec["containers"]
        assert model["resources"] == {**GPUS, "claims": [{"name": "mnnvl-claim"}]}
        assert "resources" not in sidecar
    for spec in (cliques["router"]["spec"]["podSpec"], pods["router"]["spec"]):
        assert "resourceClaims" not in spec


def test_b10_claims_in_containers_with_gpus_by_claim():
    body = workload(gpu_clique("worker:1"))
    spec = body["spec"]["template"]["cliques"][1]["spec"]["podSpec"]
    spec["resourceClaims"] = [{"name": "gpus", "resourceClaimTemplateName": "eight"}]
    spec["containers"][0]["resources"] = {"claims": [{"name": "gpus"}]}
    assert "mnnvl-claim" not in str(bodies(plan(body, domain("wl-0")), "PodClique"))
    body["metadata"]["annotations"]["grove.io/auto-mnnvl-claims"] = "worker/gpus,router/other"
    created = bodies(plan(body, domain("wl-0")), "PodClique")["worker"]["spec"]["podSpec"]
    assert created["resourceClaims"] == [*spec["resourceClaims"], CLAIM]
    model, sidecar = created["containers"]
    assert model["resources"] == {"claims": [{"name": "gpus"}, {"name": "mnnvl-claim"}]}
    assert "resources" not in sidecar


def test_b10_shared_gpu_claim_gives_all_containers_gpus():
    body = workload(gpu_clique("worker:1"))
    spec = body["spec"]["template"]["cliques"][1]["spec"]["podSpec"]
    spec["containers"][0].pop("resources")
    spec["initContainers"] = [{"name": "fetch", "image": "f"}]
    body["metadata"]["annotations"]["grove.io/auto-mnnvl-claims"] = "worker/*"
    created = bodies(plan(body, domain("wl-0")), "PodClique")
    assert "resourceClaims" not in created["router"]["spec"]["podSpec"]
    joined = created["worker"]["spec"]["podSpec"]
    assert joined["resourceClaims"] == [CLAIM]
    for container in (*joined["containers"], *joined["initContainers"]):
        assert container["resources"] == {"claims": [{"name": "mnnvl-claim"}]}


def test_i3_cliques_in_domain_have_its_label_only():
    planned = plan(workload(gpu_clique("worker:1")), domain("wl-0"))
    for kind in ("PodClique", "Pod"):
        found = bodies(planned, kind)
        assert found["worker"]["metadata"]["labels"]["grove.io/computedomain"] == "wl-0"
        assert "grove.io/computedomain" not in found["router"]["metadata"]["labels"]
        assert "grove.io/auto-mnnvl" not in found["worker"]["metadata"].get("annotations", {})


def test_j1_group_uses_claim_of_set_replica_and_auto_annotation():
    planned = plan(workload(gpu_clique("worker:1"), groups="x:2/1=worker"), domain("wl-0"))
    (group,) = bodies(planned, "PodCliqueScalingGroup").values()
    assert group["metadata"]["annotations"] == {"grove.io/auto-mnnvl": "enabled"}
    specs = [
        intent.body["spec"]["podSpec"]
        for intent in planned.intents
        if isinstance(intent, Create) and intent.target.kind == "PodClique" and "-x-" in intent.target.name
    ]
    assert [spec["resourceClaims"] for spec in specs] == [[CLAIM], [CLAIM]]


@pytest.mark.parametrize(("own", "copied"), [(None, "fast"), ("slow", "slow"), ("none", "none")])
def test_group_alias_of_set_is_copied_to_groups_without_one(own, copied):
    key = "grove.io/mnnvl-group"
    body = workload(gpu_clique("worker:1"), auto="", groups="x:1/1=worker")
    body["metadata"]["annotations"] = {key: "fast"}
    if own is not None:
        body["spec"]["template"]["podCliqueScalingGroups"][0]["annotations"] = {key: own}
    (group,) = bodies(plan(body), "PodCliqueScalingGroup").values()
    assert group["metadata"]["annotations"] == {key: copied}


@pytest.mark.parametrize("auto", ["disabled", ""])
def test_o3_opted_out_or_old_sets_have_no_trace(auto):
    body = workload(gpu_clique("worker:1"), auto=auto, groups="x:1/1=worker")
    planned = plan(body)
    assert "mnnvl" not in str([intent.body for intent in planned.intents if isinstance(intent, Create)])
    assert set(bodies(planned, "Pod")) == {"router", "worker"}


def test_l7_template_hash_ignores_fabric_claims():
    body = workload(gpu_clique("worker:1"))
    planned = plan(body, domain("wl-0"))
    plain = Simulator(body).snapshot()
    untouched = bodies(plan_replica(plain, 0.0), "PodClique")
    key = "grove.io/pod-template-hash"
    found = bodies(planned, "PodClique")
    assert {name: one["metadata"]["labels"][key] for name, one in found.items()} == {
        name: one["metadata"]["labels"][key] for name, one in untouched.items()
    }
    assert generation_hash(read_set(body)) == generation_hash(
        read_set(workload(gpu_clique("worker:1"), auto=""))
    )


@pytest.mark.parametrize(
    ("found", "observed"),
    [([], {}), ([domain("wl-0")], {"templates_listed": True})],
    ids=["no domain", "no claim template"],
)
def test_gang_is_not_begun_while_a_domain_is_missing(found, observed):
    planned = plan(workload(gpu_clique("worker:1")), *found, **observed)
    assert bodies(planned, "Pod") == bodies(planned, "PodGang") == {}
    assert set(bodies(planned, "PodClique")) == {"router", "worker"}
    assert planned.errors == ()  # it is being created
    (code, count), reason = planned.report.waiting.counts[0], planned.report.waiting.first
    assert (code, count) == ("ComputeDomainNotReady", 1)
    assert str(reason.about) == "ComputeDomain wl-0"
    assert "PodClique wl-0-worker needs it" in reason.message


def test_all_cliques_of_a_gang_that_is_not_begun_say_why():
    sim = Simulator(workload(gpu_clique("worker:1")))
    sim.execute(plan_replica(resolved(sim.snapshot()), 0.0))
    planned = plan_replica(resolved(sim.snapshot()), 0.0)
    for name in ("wl-0-router", "wl-0-worker"):
        (update,) = (each for each in planned.status_updates if each.target.name == name)
        (waiting,) = (each for each in update.desired.conditions if each.type == "Waiting")
        assert waiting.message.startswith("ComputeDomain wl-0: the fabric domain is not ready, and PodClique")


def test_domain_that_vanishes_delays_only_its_clique():
    """The gang exists, and its other pods are kept complete."""
    sim = Simulator(workload(gpu_clique("worker:1")))
    snapshot = sim.snapshot()
    sim.execute(plan_replica(resolved(snapshot, owned(domain("wl-0"), snapshot)), 0.0))
    for name in sim.pods():
        sim.api.delete("Pod", name)
    planned = plan_replica(resolved(sim.snapshot()), 0.0)
    assert set(bodies(planned, "Pod")) == {"router"}


def test_deleted_gang_is_restored_although_its_domain_vanished():
    sim = Simulator(workload(gpu_clique("worker:1")))
    snapshot = sim.snapshot()
    sim.execute(plan_replica(resolved(snapshot, owned(domain("wl-0"), snapshot)), 0.0))
    sim.api.delete("PodGang", "wl-0")
    planned = plan_replica(resolved(sim.snapshot()), 0.0)
    assert len(bodies(planned, "PodGang")) == 1
    assert bodies(planned, "Pod") == {}, "all of its pods exist"


@pytest.mark.parametrize(
    ("found", "options", "words"),
    [
        ([], {"served": False}, "computedomains.resource.nvidia.com is not served: install the NVIDIA DRA"),
        ([domain("wl-0")], {"ours": False}, ""),
    ],
)
def test_missing_domain_is_reported_on_its_clique_only(found, options, words):
    planned = plan(workload(gpu_clique("worker:1")), *found, **options)
    assert bodies(planned, "Pod") == {}
    reported = {user_error.regarding.name: user_error for user_error in planned.errors}
    assert set(reported) == ({"wl-0-worker"} if words else set())
    for user_error in reported.values():
        assert user_error.code == "ERR_SYNC_COMPUTEDOMAIN"
        assert words in user_error.message


def test_cd5_foreign_domain_blocks_pods():
    foreign = replace(domain("wl-0"), metadata=replace(domain("wl-0").metadata, labels={}))
    planned = plan(workload(gpu_clique("worker:1")), foreign, ours=False)
    (user_error,) = planned.errors
    assert "ComputeDomain wl-0 belongs to another owner" in user_error.message
    assert bodies(planned, "Pod") == {}


@pytest.mark.parametrize(("deleted_at", "words"), [(None, "wl-0, by which"), ("2026-01-01T00:00:00Z", "")])
def test_cd6_foreign_template_blocks_pods(deleted_at, words):
    template = ObjectMeta("wl-0", deletion_timestamp=deleted_at)
    planned = plan(workload(gpu_clique("worker:1")), domain("wl-0"), template=template)
    assert bodies(planned, "Pod") == {}
    assert [words in user_error.message for user_error in planned.errors] == ([True] if words else [])


def test_l8_terminating_domain_blocks_new_pods():
    going = domain("wl-0")
    going = replace(going, metadata=replace(going.metadata, deletion_timestamp="2026-01-01T00:00:00Z"))
    planned = plan(workload(gpu_clique("worker:1")), going)
    (user_error,) = planned.errors
    assert "is being deleted while it is needed" in user_error.message


def test_x5_named_existing_domain_provides_its_template():
    theirs = domain("team", channel={"resourceClaimTemplate": {"name": "channels"}})
    theirs = replace(theirs, metadata=replace(theirs.metadata, labels={}))
    key = {"nvidia.com/computedomain": "team"}
    planned = plan(workload(gpu_clique("worker:1", **key), auto=""), theirs, ours=False)
    pods = bodies(planned, "Pod")
    (claim,) = pods["worker"]["spec"]["resourceClaims"]
    assert claim["resourceClaimTemplateName"] == "channels"
    assert pods["worker"]["metadata"]["annotations"] == key


def test_two_vendors_in_one_pod_each_add_a_claim():
    keys = {"nvidia.com/computedomain": "team", "example.com/fabric": "isle"}
    planned = plan(workload(gpu_clique("worker:1", **keys), auto=""))
    spec = bodies(planned, "PodClique")["worker"]["spec"]["podSpec"]
    assert spec["resourceClaims"] == [
        {"name": "island", "resourceClaimTemplateName": "isle-berth"},
        {"name": "mnnvl-claim", "resourceClaimTemplateName": "team"},
    ]


def test_gang_conditions_mention_a_domain_that_is_being_deleted():
    sim = Simulator(workload(gpu_clique("worker:1")))
    snapshot = sim.snapshot()
    found = owned(domain("wl-0"), snapshot)
    sim.execute(plan_replica(resolved(snapshot, found), 0.0))
    going = replace(found, metadata=replace(found.metadata, deletion_timestamp="2026-01-01T00:00:00Z"))
    for seen, mentioned in ((found, False), (going, True)):
        planned = plan_replica(resolved(sim.snapshot(), seen), 0.0)
        (update,) = (each for each in planned.status_updates if each.target.kind == "PodGang")
        said = {
            each.type: "ComputeDomain wl-0 is being" in each.message for each in update.desired.conditions
        }
        assert (said["Scheduled"], said["Ready"]) == (mentioned, mentioned)


@pytest.mark.parametrize(
    ("change", "advice"),
    [
        (
            {"annotations": {"grove.io/recreate": "true"}, "deletion_timestamp": "2026-01-01T00:00:00Z"},
            "again",
        ),
        ({"labels": {}, "deletion_timestamp": "2026-01-01T00:00:00Z"}, "which is not managed by Grove"),
        (
            {"labels": {**domain("wl-0").metadata.labels, "app.kubernetes.io/part-of": "other"}},
            "ComputeDomain wl-0 belongs to PodCliqueSet other: use another name",
        ),
    ],
)
def test_gang_clique_and_set_give_the_same_advice(change, advice):
    sim = Simulator(workload(gpu_clique("worker:1")))
    snapshot = sim.snapshot()
    sim.execute(plan_replica(resolved(snapshot, owned(domain("wl-0"), snapshot)), 0.0))
    found = domain("wl-0")
    snapshot = resolved(sim.snapshot(), replace(found, metadata=replace(found.metadata, **change)))
    planned = plan_replica(snapshot, 0.0)
    (of_clique,) = {error.message for error in planned.errors}
    assert advice in of_clique
    (update,) = (each for each in planned.status_updates if each.target.kind == "PodGang")
    of_gang = {each.type: each.message for each in update.desired.conditions}
    assert of_clique in of_gang["Ready"]
    status = with_domains(snapshot.workload.status, snapshot.workload, snapshot.domains["worker"][0], 0.0)
    (of_set,) = status.conditions
    assert of_clique in of_set.message
