"""NVLink domains on the real control plane: claims are made by Kubernetes, allocated by its scheduler, and
prepared by a stand-in for the driver, without which no enrolled pod becomes ready."""

from __future__ import annotations

from tests.cluster.operator.nvlink.domain_status import domains, events, ready, reason, reasons
from tests.cluster.operator.support import fabric
from tests.cluster.operator.support.fabric import DOMAINS, FINALIZER, NVIDIA, automatic, gpus, named
from tests.cluster.operator.support.harness import World, operating
from tests.cluster.operator.support.objects import CLIQUES, GROUPS, PODS, SETS
from tests.cluster.operator.support.workloads import clique, group, workload

CLAIMS, TEMPLATES = fabric.RESOURCE_CLAIMS, fabric.RESOURCE_CLAIM_TEMPLATES


async def test_one_domain_for_each_replica_and_claims_for_gpu_containers_only(world: World) -> None:
    body = automatic(
        "app",
        clique("router"),
        gpus("prefill"),
        gpus("worker"),
        groups=(group("model", 2, 1, "worker"),),
        replicas=2,
    )
    async with operating(world, fabrics=NVIDIA):
        await world.create(SETS, body)
        await world.until_ready()
        assert domains(world) == ["app-0", "app-1"]
        for pod in world.pods():
            enrolled = "router" not in pod.name
            claims = [claim["resourceClaimTemplateName"] for claim in pod.spec.get("resourceClaims", ())]
            assert claims == ([f"app-{pod.name.split('-')[1]}"] if enrolled else [])
            used = {each["name"]: each["resources"].get("claims") for each in pod.spec["containers"]}
            if enrolled:
                assert used == {"model": [{"name": "mnnvl-claim"}], "sidecar": None}
        assert [found.metadata.annotations for found in world.all(GROUPS)] == [fabric.AUTO, fabric.AUTO]
        assert len(world.all(CLAIMS)) == 6
        await world.until(lambda: ready(world, "app") == "True", "ComputeDomainsReady")
        lines = world.get(SETS, "app").status["computeDomains"]
        assert [(line["name"], line["phase"], line["readyNodes"]) for line in lines] == [
            ("app-0", "Ready", 3),
            ("app-1", "Ready", 3),
        ]
        made = [("ComputeDomainCreated", f"ComputeDomain app-{index} created") for index in range(2)]
        await world.until(lambda: sorted(events(world, "app")) == made, "the events")
        await world.delete(SETS, "app")
        await world.until(lambda: not world.all(SETS) and not world.all(DOMAINS), "all gone")
        assert not world.all(PODS)
        await world.until(lambda: not world.all(TEMPLATES), "the templates gone")


async def test_replicas_of_a_group_may_have_domains_of_their_own(world: World) -> None:
    notes = {"nvidia.com/computedomain": "team", "nvidia.com/computedomain-scope": "scaling-group-replica"}
    body = workload("app", gpus("worker", annotations=notes), groups=(group("model", 1, 1, "worker"),))
    async with operating(world, fabrics=NVIDIA):
        await world.create(SETS, body)
        await world.until_ready()
        assert domains(world) == ["team-0-0"]
        await world.scale(GROUPS, "app-0-model", 3)
        await world.until(lambda: len(world.pods()) == 3 and world.whole(), "three replicas of the group")
        assert domains(world) == ["team-0-0", "team-0-1", "team-0-2"]
        await world.scale(GROUPS, "app-0-model", 1)
        await world.until(lambda: world.names(DOMAINS) == ["team-0-0"])
        await world.until_ready()


async def test_domains_come_with_replicas_and_go_after_their_pods(world: World) -> None:
    """Scaled out and in; what is opted out, or without GPUs, has nothing to do with it."""

    def domain_without_pods_is_let_go_only() -> list[str]:
        """A domain that goes must have no pods any more."""
        claimed = {
            claim["resourceClaimTemplateName"]
            for pod in world.all(PODS)
            for claim in pod.spec.get("resourceClaims", ())
        }
        return [
            domain.name
            for domain in world.all(DOMAINS)
            if domain.name in claimed and FINALIZER not in domain.metadata.finalizers
        ]

    async with operating(world, fabrics=NVIDIA):
        with fabric.never(world, domain_without_pods_is_let_go_only):
            out = workload("out", gpus("worker"))
            out["metadata"]["annotations"] = {"grove.io/auto-mnnvl": "disabled"}
            await world.create(SETS, out)
            await world.create(SETS, automatic("cpu", clique("worker")))
            body = automatic("app")
            slow = {"pod-gone.grove.local/delay": "1s"}
            body["spec"]["template"]["cliques"][0]["annotations"] = slow
            await world.create(SETS, body)
            await world.until_ready()
            assert domains(world) == ["app-0"]
            uid = world.get(DOMAINS, "app-0").uid
            await world.scale(SETS, "app", 3)
            await world.until(lambda: len(world.pods(part_of="app")) == 3 and world.whole(), "three replicas")
            assert domains(world) == ["app-0", "app-1", "app-2"]
            await world.scale(SETS, "app", 1)
            await world.until(lambda: not world.find(DOMAINS, "app-1") and not world.find(DOMAINS, "app-2"))
            await world.until_ready()
            assert world.get(DOMAINS, "app-0").uid == uid
            await world.delete(SETS, "app")
            await world.until(lambda: not world.find(SETS, "app") and not world.all(DOMAINS))
            assert len(world.pods()) == 2
            gone = ("ComputeDomainDeleted", "ComputeDomain app-2 deleted")
            await world.until(lambda: gone in events(world, "app"), "the event")


async def test_deleted_by_hand_it_is_held_told_and_made_again_after_scaling_in_and_out(world: World) -> None:
    async with operating(world, fabrics=NVIDIA):
        await world.create(SETS, automatic("app"))
        await world.until_ready()
        uid = world.get(DOMAINS, "app-0").uid
        await world.delete(DOMAINS, "app-0")
        await world.until(lambda: reason(world, "app") == "ComputeDomainTerminating", "the condition")
        assert world.get(DOMAINS, "app-0").metadata.finalizers == (FINALIZER,)
        (pod,) = world.pods()
        await world.delete(PODS, pod.name)
        await world.until(lambda: world.get(CLIQUES, "app-0-worker").status.get("lastErrors"), "it is held")
        assert world.pods() == []
        await world.scale(SETS, "app", 0)
        await world.until(lambda: not world.all(DOMAINS), "the domain is let go")
        await world.scale(SETS, "app", 1)
        await world.until_ready()
        assert world.get(DOMAINS, "app-0").uid != uid
        await world.until(lambda: "ComputeDomainTerminating" in reasons(world, "app"), "the event")
        assert reasons(world, "app").count("ComputeDomainTerminating") == 1


async def test_two_sets_share_a_domain_and_the_last_one_takes_it_along(world: World) -> None:
    async with operating(world, fabrics=NVIDIA):
        await world.create(SETS, named("one", "team", replicas=2))
        await world.create(SETS, named("two", "team"))
        await world.create(SETS, named("own", "mine", notes={"nvidia.com/computedomain-scope": "replica"}))
        await world.until_ready()
        assert domains(world) == ["mine-0", "team"]
        owners = [world.get(SETS, name).uid for name in ("one", "two")]
        assert sorted(world.get(DOMAINS, "team").owners) == sorted(owners)
        await world.delete(SETS, "one")
        await world.until(lambda: not world.find(SETS, "one"))
        await world.until(lambda: list(world.get(DOMAINS, "team").owners) == owners[1:], "one owner")
        assert world.get(DOMAINS, "team").labels["app.kubernetes.io/part-of"] == "two"
        await world.delete(SETS, "two")
        await world.until(lambda: not world.find(SETS, "two"))
        assert domains(world) == ["mine-0"]


async def test_what_somebody_else_made_is_used_by_name_in_the_way_of_automation_and_never_touched(
    world: World,
) -> None:
    async with operating(world, fabrics=NVIDIA):
        await world.create(DOMAINS, fabric.theirs("team", "channels"))
        await world.create(DOMAINS, fabric.theirs("app-0", "other"))
        await world.create(SETS, named("user", "team"))
        await world.create(SETS, automatic("app", clique("router"), gpus("worker")))
        await world.create(TEMPLATES, fabric.claims_nothing("bare-0"))
        await world.create(SETS, automatic("bare"))
        await world.until(lambda: [pod.name for pod in world.pods(part_of="user") if fabric.answers(pod)])
        (pod,) = world.pods(part_of="user")
        assert [each["resourceClaimTemplateName"] for each in pod.spec["resourceClaims"]] == ["channels"]
        await world.until(lambda: reason(world, "app") == "NameConflict", "the condition")
        assert [pod.labels["grove.io/clique"] for pod in world.pods(part_of="app")] == ["router"]
        await world.delete(SETS, "user")
        await world.until(lambda: not world.find(SETS, "user"))
        assert FINALIZER not in world.get(DOMAINS, "team").metadata.finalizers
        await world.delete(DOMAINS, "team")
        await world.delete(DOMAINS, "app-0")
        await world.until(lambda: reason(world, "bare") == "NameConflict", "CD6: the template is taken")
        assert not world.pods(part_of="bare")
        await world.delete(TEMPLATES, "bare-0")
        await world.until_ready()
        assert len(world.pods(part_of="app")) == 2
        await world.until(lambda: reasons(world, "user") == ["ComputeDomainReferenced"], "the events")
        for name in ("app", "bare"):
            await world.until(
                lambda name=name: "ComputeDomainConflict" in reasons(world, name), f"the event of {name}"
            )
