"""Restores the labels of our objects when others removed or changed them.

The caches select by labels and index the objects of a replica by labels, so an object without them seems
missing. The create that follows fails with AlreadyExists; if the owner reference of the existing object shows
that it is ours, it gets its labels back. Everything else that is wrong with it is repaired by the next plan,
which sees it.

A pod is not created again under its name: the plan of its replica restores the labels of a lost pod
(`grove.plan.members.lost_pods`).
"""

from __future__ import annotations

from msgspec.structs import replace

from grove.api.intents import Create, Delete, Patch
from grove.api.naming import labels
from grove.kube.executor.outcome import IntentState, Outcome, Result


def relabel_existing(outcome: Outcome) -> list[Patch | Delete]:
    """Writes for existing objects that the plan tried to create because they lack their labels. Roles and
    RoleBindings are deleted and created again: the operator has no right to patch them."""
    return [write for result in outcome.results if (write := _relabel(result)) is not None]


def _relabel(result: Result) -> Patch | Delete | None:
    intent = result.intent
    if result.state is not IntentState.FOUND or not isinstance(intent, Create):
        return None
    desired, found = intent.body["metadata"].get("labels", {}), result.existing.metadata
    if desired.get(labels.MANAGED_BY) != labels.OPERATOR:
        return None  # an object that no cache selects by our labels, which may have other owners
    missing = {key: desired.get(key) for key in labels.SELECTORS if found.labels.get(key) != desired.get(key)}
    if not missing:
        return None
    target = replace(intent.target, name=result.name)
    if target.kind in ("Role", "RoleBinding"):
        return Delete(target, uid=found.uid)
    metadata = {"uid": found.uid, "resourceVersion": found.resource_version, "labels": missing}
    return Patch(target, {"metadata": metadata})
