"""NVLink domains on the real control plane: Kubernetes creates the claims of pods, its scheduler allocates
them, and a stand-in for the driver prepares them; before that no pod of a domain becomes ready."""

from __future__ import annotations

import pytest

from tests.cluster.operator.nvlink.domain_status import domains, events, message, ready, reason, reasons
from tests.cluster.operator.support import fabric
from tests.cluster.operator.support.fabric import DOMAINS, FINALIZER, NVIDIA, automatic, gpus, named
from tests.cluster.operator.support.harness import World, operating
from tests.cluster.operator.support.objects import CLIQUES, GROUPS, PODS, SETS
from tests.cluster.operator.support.workloads import clique, group, workload

CLAIMS, TEMPLATES = fabric.RESOURCE_CLAIMS, fabric.RESOURCE_CLAIM_TEMPLATES


@pytest.mark.proves("nvlink", scheduler="any")
async def test_replica_gets_domain_and_gpu_containers_get_claims(world: World) -> None:
    body = automatic(
        "app",
        clique("router"),
        gpus("prefill"),
        gpus("worker"),
        groups=(group("model", 2, 1, "worker"),),
        replicas=2,
    )
    async with fabric.one_partition(world.client), operating(world, fabrics=NVIDIA):
        await world.create(SETS, body)
        await world.until_ready()
        assert domains(world) == ["app-0", "app-1"]
        for pod in world.pods():
            in_domain = "router" not in pod.name
            claims = [claim["resourceClaimTemplateName"] for claim in pod.spec.get("resourceClaims", ())]
            assert claims == ([f"app-{pod.name.split('-')[1]}"] if in_domain else [])
            used = {each["name"]: each["resources"].get("claims") for each in pod.spec["containers"]}
            if in_domain:
                assert used == {"model": [{"name": "mnnvl-claim"}], "sidecar": None}
        assert [found.metadata.annotations for found in world.all(GROUPS)] == [fabric.AUTO, fabric.AUTO]
        assert len(world.all(CLAIMS)) == 6
        await world.until(lambda: ready(world, "app") == "True", "ComputeDomainsReady")
        lines = world.get(SETS, "app").status["computeDomains"]
        assert [(line["name"], line["phase"], line["readyNodes"]) for line in lines] == [
            ("app-0", "Ready", 3),
            ("app-1", "Ready", 3),
        ]
        created = [("ComputeDomainCreated", f"ComputeDomain app-{index} created") for index in range(2)]
        await world.until(lambda: sorted(events(world, "app")) == created, "the events")
        await world.delete(SETS, "app")
        await world.until(lambda: not world.all(SETS) and not world.all(DOMAINS), "all deleted")
        assert not world.all(PODS)
        await world.until(lambda: not world.all(TEMPLATES), "the templates deleted")


async def test_group_replicas_may_have_their_own_domains(world: World) -> None:
    notes = {"nvidia.com/computedomain": "team", "nvidia.com/computedomain-scope": "scaling-group-replica"}
    body = workload("app", gpus("worker", annotations=notes), groups=(group("model", 1, 1, "worker"),))
    async with operating(world, fabrics=NVIDIA):
        await world.create(SETS, body)
        await world.until_ready()
        assert domains(world) == ["team-0-0"]
        await world.scale(GROUPS, "app-0-model", 3)
        await world.until(lambda: len(world.pods()) == 3 and world.all_ready(), "three replicas of the group")
        assert domains(world) == ["team-0-0", "team-0-1", "team-0-2"]
        await world.scale(GROUPS, "app-0-model", 1)
        await world.until(lambda: world.names(DOMAINS) == ["team-0-0"])
        await world.until_ready()


@pytest.mark.proves("nvlink", scheduler="any")
async def test_domains_scale_with_replicas_and_outlive_pods(world: World) -> None:
    """Sets that opt out or have no GPUs get no domains."""

    def domains_released_with_pods() -> list[str]:
        """Domains that lost their finalizer although pods still use them."""
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
        with fabric.never(world, domains_released_with_pods):
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
            await world.until(
                lambda: len(world.pods(part_of="app")) == 3 and world.all_ready(), "three replicas"
            )
            assert domains(world) == ["app-0", "app-1", "app-2"]
            await world.scale(SETS, "app", 1)
            await world.until(lambda: not world.find(DOMAINS, "app-1") and not world.find(DOMAINS, "app-2"))
            await world.until_ready()
            assert world.get(DOMAINS, "app-0").uid == uid
            await world.delete(SETS, "app")
            await world.until(lambda: not world.find(SETS, "app") and not world.all(DOMAINS))
            assert len(world.pods()) == 2
            deleted = ("ComputeDomainDeleted", "ComputeDomain app-2 deleted")
            await world.until(lambda: deleted in events(world, "app"), "the event")


async def test_deleted_domain_stays_until_scale_in(world: World) -> None:
    """The finalizer keeps a domain that a user deletes, and its set reports it; after scale in and out there
    is a new one."""
    async with operating(world, fabrics=NVIDIA):
        await world.create(SETS, automatic("app"))
        await world.until_ready()
        uid = world.get(DOMAINS, "app-0").uid
        await world.delete(DOMAINS, "app-0")
        await world.until(lambda: reason(world, "app") == "ComputeDomainTerminating", "the condition")
        assert world.get(DOMAINS, "app-0").metadata.finalizers == (FINALIZER,)
        (pod,) = world.pods()
        await world.delete(PODS, pod.name)
        await world.until(
            lambda: world.get(CLIQUES, "app-0-worker").status.get("lastErrors"), "the error reported"
        )
        assert world.pods() == []
        await world.scale(SETS, "app", 0)
        await world.until(lambda: not world.all(DOMAINS), "the domain deleted")
        await world.scale(SETS, "app", 1)
        await world.until_ready()
        assert world.get(DOMAINS, "app-0").uid != uid
        await world.until(lambda: "ComputeDomainTerminating" in reasons(world, "app"), "the event")
        assert reasons(world, "app").count("ComputeDomainTerminating") == 1
        await _recreate_first_domain_of_two(world)


async def _recreate_first_domain_of_two(world: World) -> None:
    """The annotation restarts the pods of one replica; those of the other one and without a domain stay."""
    await world.scale(SETS, "app", 2)
    await world.until(lambda: len(world.pods()) == 2 and world.all_ready(), "two replicas")
    before = {pod.labels["grove.io/podcliqueset-replica-index"]: pod.uid for pod in world.pods()}
    uid = world.get(DOMAINS, "app-0").uid
    await world.delete(DOMAINS, "app-0")
    await world.until(lambda: reason(world, "app") == "ComputeDomainTerminating", "the condition")
    assert {pod.uid for pod in world.pods()} == set(before.values())
    await world.patch(DOMAINS, "app-0", {"metadata": {"annotations": {"grove.io/recreate": "true"}}})
    await world.until(
        lambda: (
            (found := world.find(DOMAINS, "app-0")) is not None
            and found.uid != uid
            and len(world.pods()) == 2
            and world.all_ready()
        ),
        "the domain created again",
    )
    after = {pod.labels["grove.io/podcliqueset-replica-index"]: pod.uid for pod in world.pods()}
    assert (after["0"] != before["0"], after["1"] == before["1"]) == (True, True)
    assert "grove.io/recreate" not in world.get(DOMAINS, "app-0").metadata.annotations
    await world.until(lambda: "ComputeDomainRecreating" in reasons(world, "app"), "the event")


async def test_shared_domain_is_deleted_with_its_last_set(world: World) -> None:
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


async def test_foreign_domain_is_used_by_name_and_never_changed(world: World) -> None:
    """A foreign domain or template with the name of an automatic domain is a name conflict."""
    async with operating(world, fabrics=NVIDIA):
        await world.create(DOMAINS, fabric.foreign_domain("team", "channels"))
        held = fabric.foreign_domain("app-0", "other")
        held["metadata"]["finalizers"] = ["example.com/hold"]
        await world.create(DOMAINS, held)
        await world.create(SETS, named("user", "team"))
        await world.create(SETS, automatic("app", clique("router"), gpus("worker")))
        await world.create(TEMPLATES, fabric.foreign_claim_template("bare-0"))
        await world.create(SETS, automatic("bare"))
        await world.until(lambda: [pod.name for pod in world.pods(part_of="user") if fabric.is_ready(pod)])
        (pod,) = world.pods(part_of="user")
        assert [each["resourceClaimTemplateName"] for each in pod.spec["resourceClaims"]] == ["channels"]
        await world.until(lambda: reason(world, "app") == "NameConflict", "the condition")
        assert world.pods(part_of="app") == [], "the gang is not begun"
        await world.delete(SETS, "user")
        await world.until(lambda: not world.find(SETS, "user"))
        assert FINALIZER not in world.get(DOMAINS, "team").metadata.finalizers
        await world.delete(DOMAINS, "team")
        await world.delete(DOMAINS, "app-0")
        await world.until(
            lambda: (
                "app-0, which is not managed by Grove, is being deleted: new pods wait until its finalizers "
                "(example.com/hold)" in message(world, SETS, "app", "ComputeDomainsReady")
            ),
            "whose finalizer holds it",
        )
        await world.patch(DOMAINS, "app-0", {"metadata": {"finalizers": None}})
        await world.until(lambda: reason(world, "bare") == "NameConflict", "CD6: the template is taken")
        assert not world.pods(part_of="bare")
        await world.delete(TEMPLATES, "bare-0")
        await world.until_ready()
        assert len(world.pods(part_of="app")) == 2
        await world.create(SETS, named("intruder", "app-0"))
        advice = (
            "ComputeDomain app-0 belongs to PodCliqueSet app: use another name for this set or its domain"
        )
        await world.until(
            lambda: advice in message(world, SETS, "intruder", "ComputeDomainsReady"), "the advice"
        )
        await world.until(lambda: reasons(world, "user") == ["ComputeDomainReferenced"], "the events")
        for name in ("app", "bare"):
            await world.until(
                lambda name=name: "ComputeDomainConflict" in reasons(world, name), f"the event of {name}"
            )
