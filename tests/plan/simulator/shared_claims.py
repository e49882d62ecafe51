"""Builders for sets with shared claims, and lookups of these claims."""

from __future__ import annotations

from typing import Any

import msgspec

from grove.api.naming import annotations, labels
from grove.api.types.kubernetes_objects import ResourceClaimTemplateObject
from tests.plan.builders import a_set
from tests.plan.simulator.api_server import Body
from tests.plan.simulator.simulator import Simulator

KIND = "ResourceClaim"
SET, GROUP, CLIQUE = (
    "ERR_SYNC_PCS_RESOURCE_CLAIM",
    "ERR_SYNC_PCSG_RESOURCE_CLAIM",
    "ERR_SYNC_PCLQ_RESOURCE_CLAIM",
)


def device(name: str) -> Body:
    return {"devices": {"requests": [{"name": name, "exactly": {"deviceClassName": f"{name}-class"}}]}}


def own(*names: str) -> list[Body]:
    """Templates of the set itself; their metadata is not used."""
    metadata = {"labels": {"not": "copied"}}
    return [{"name": name, "templateSpec": {"metadata": metadata, "spec": device(name)}} for name in names]


def a_template(namespace: str, name: str, shared_with: str = "") -> ResourceClaimTemplateObject:
    notes = {annotations.SHARED_WITH_NAMESPACES: shared_with} if shared_with else {}
    metadata = {"namespace": namespace, "name": name, "annotations": notes}
    body = {"metadata": metadata, "spec": {"spec": device(name)}}
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


def claims(sim: Simulator) -> set[str]:
    return set(sim.api.all(KIND))


def used(sim: Simulator, clique: str) -> list[list[str]]:
    """The claims that the pods of a clique refer to, by index."""
    found = sorted(sim.pods(clique).values(), key=lambda pod: pod.metadata.labels[labels.POD_INDEX])
    return [[claim.resource_claim_name for claim in pod.spec.resource_claims] for pod in found]


def owner(sim: Simulator, name: str) -> tuple[str, str]:
    (reference,) = sim.api.get(KIND, name)["metadata"]["ownerReferences"]
    held = sim.api.get(reference["kind"], reference["name"])
    assert reference["uid"] == held["metadata"]["uid"]
    assert reference["controller"]
    return reference["kind"], reference["name"]
