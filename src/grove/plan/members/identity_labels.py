"""Restores the labels of pods that say which set, clique, group and gang they belong to (`gang.planner`)."""

from __future__ import annotations

from collections.abc import Iterable

from grove.api.intents import Patch
from grove.api.naming import labels
from grove.plan.desired.expand import Clique
from grove.plan.members import pod_state
from grove.plan.members.membership import Member
from grove.plan.writes.builders import patch_pod_metadata

_IDENTITY_LABELS = frozenset(
    {
        labels.NAME,
        labels.COMPONENT,
        labels.CLIQUE,
        labels.CLIQUE_TEMPLATE,
        labels.POD_INDEX,
        labels.GANG,
        labels.BASE_GANG,
        labels.GROUP,
        labels.GROUP_REPLICA,
    }
)
"""Labels that say which set, clique, group and gang a pod belongs to."""

_STANDALONE, _MEMBER = labels.ComponentLabel.CLIQUE.value, labels.ComponentLabel.MEMBER_CLIQUE.value


def restore_identity_labels(clique: Clique, members: Iterable[Member]) -> list[Patch]:
    """Restores labels of pods that say where they belong: autoscalers and schedulers select by them, and
    containers read their index from them."""
    expected = _identity_labels(clique)
    foreign = _IDENTITY_LABELS - expected.keys()
    patches: list[Patch] = []
    for member in members:
        if member.pod is None or pod_state.terminating(member.pod):
            continue
        expected[labels.POD_INDEX] = str(member.index)
        object_labels = member.pod.metadata.labels
        if expected.items() <= object_labels.items() and foreign.isdisjoint(object_labels):
            continue
        changed = {
            key: expected.get(key) for key in _IDENTITY_LABELS if object_labels.get(key) != expected.get(key)
        }
        patches.append(patch_pod_metadata(member.pod, {"labels": changed}))
    return patches


def _identity_labels(wanted: Clique) -> dict[str, str]:
    """The labels that say where a pod belongs, except for its index."""
    expected = {
        labels.NAME: wanted.name,
        labels.COMPONENT: _STANDALONE,
        labels.CLIQUE: wanted.name,
        labels.CLIQUE_TEMPLATE: wanted.template.name,
        labels.POD_INDEX: "",
        labels.GANG: wanted.gang,
    }
    if wanted.group is not None:
        expected[labels.COMPONENT] = _MEMBER
        expected[labels.GROUP] = wanted.group.name
        expected[labels.GROUP_REPLICA] = str(wanted.group_replica)
    if wanted.base_gang:
        expected[labels.BASE_GANG] = wanted.base_gang
    return expected
