"""The objects that belong to an object: those whose state explains its own. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct

from grove.api.meta import ObjectMeta
from grove.api.naming import labels
from grove.api.types.kind import Kind
from grove.api.types.pod import Pod
from grove.api.types.podclique import PodClique
from grove.api.types.podcliquescalinggroup import PodCliqueScalingGroup
from grove.api.types.podcliqueset import PodCliqueSet
from grove.api.types.podgang import PodGang
from grove.dynamo.api.graph_deployment import DynamoGraphDeployment
from grove.explanation.model import ObjectRef
from grove.explanation.suggestions import unknown_name
from grove.kube.errors import KubeError
from grove.operator.caches.owners import owning_graph
from grove.reasons.model import ObjectName

if TYPE_CHECKING:
    from grove.kube.cache.cache import HasMetadata

_Any = TypeVar("_Any", bound="HasMetadata")
POD = "Pod"
_OURS: tuple[Kind, ...] = (
    DynamoGraphDeployment.KIND,
    PodCliqueSet.KIND,
    PodCliqueScalingGroup.KIND,
    PodClique.KIND,
    PodGang.KIND,
)
_WORDS = {
    DynamoGraphDeployment.KIND.name: ("graph",),
    PodCliqueSet.KIND.name: ("set",),
    PodCliqueScalingGroup.KIND.name: ("group",),
    PodClique.KIND.name: ("clique",),
    PodGang.KIND.name: ("gang",),
}
KINDS = {
    word: kind.name
    for kind in _OURS
    for word in (kind.name.lower(), kind.plural, *kind.short_names, *_WORDS[kind.name])
} | {"pod": POD, "pods": POD, "po": POD}
"""By the word that users write before a slash, the kind that is meant."""


class UnknownObject(KubeError):
    """There is no such object; the message says which ones there are."""


class Objects(Struct, frozen=True, dict=True):
    """All objects of our kinds, and their pods."""

    graphs: tuple[DynamoGraphDeployment, ...] = ()
    sets: tuple[PodCliqueSet, ...] = ()
    groups: tuple[PodCliqueScalingGroup, ...] = ()
    cliques: tuple[PodClique, ...] = ()
    gangs: tuple[PodGang, ...] = ()
    pods: tuple[Pod, ...] = ()

    @cached_property
    def by_set(self) -> dict[tuple[str, str], Objects]:
        """Groups, cliques, gangs and pods by namespace and name of their set, sorted out once for all."""
        kinds: dict[tuple[str, str], dict[str, list[HasMetadata]]] = {}
        members: dict[str, tuple[HasMetadata, ...]] = {
            "groups": self.groups, "cliques": self.cliques, "gangs": self.gangs, "pods": self.pods,
        }  # fmt: skip
        for kind, found in members.items():
            for each in found:
                key = each.metadata.namespace, _label(each, labels.PART_OF)
                kinds.setdefault(key, {}).setdefault(kind, []).append(each)
        return {
            key: Objects(**{kind: tuple(found) for kind, found in each.items()})  # type: ignore[arg-type]
            for key, each in kinds.items()
        }

    def named(self) -> Iterator[tuple[str, ObjectMeta]]:
        """Kind and metadata of each object, from wide to narrow."""
        kinds = (*(each.name for each in _OURS), POD)
        found: tuple[Iterable[HasMetadata], ...] = (
            self.graphs, self.sets, self.groups, self.cliques, self.gangs, self.pods,
        )  # fmt: skip
        for kind, members in zip(kinds, found, strict=True):
            yield from ((kind, each.metadata) for each in members)


class Subtree(Struct, frozen=True):
    """An object, the set that it belongs to, and what belongs to it."""

    about: ObjectRef
    graph: DynamoGraphDeployment | None = None
    workload: PodCliqueSet | None = None
    groups: tuple[PodCliqueScalingGroup, ...] = ()
    cliques: tuple[PodClique, ...] = ()
    gangs: tuple[PodGang, ...] = ()
    pods: tuple[Pod, ...] = ()

    def parts(self) -> set[ObjectName]:
        """The groups, cliques and gangs."""
        ours = {each.name for each in _OURS[2:]}
        return {ObjectName(kind, meta.name) for kind, meta in self.named() if kind in ours}

    def named(self) -> Iterator[tuple[str, ObjectMeta]]:
        """Kind and metadata of each object, also of the set and the graph that it belongs to."""
        found: tuple[Iterable[HasMetadata | None], ...] = (
            (self.graph,), (self.workload,), self.groups, self.cliques, self.gangs, self.pods,
        )  # fmt: skip
        for kind, members in zip((*(each.name for each in _OURS), POD), found, strict=True):
            yield from ((kind, each.metadata) for each in members if each is not None)


def is_whole_set(tree: Subtree) -> bool:
    """Whether a set as a whole is explained."""
    return tree.about.kind in (PodCliqueSet.KIND.name, DynamoGraphDeployment.KIND.name)


def kind_and_name(written: str) -> tuple[str, str]:
    """What a user has written, as kind and name; the kind is empty if none is given. Raises UnknownObject for
    a word that is no kind."""
    word, slash, name = written.rpartition("/")
    kind = KINDS.get(word.lower(), "") if slash else ""
    if slash and not kind:
        kinds = ", ".join(sorted({words[0] for words in _WORDS.values()} | {"pod"}))
        raise UnknownObject(f"{written}: unknown kind {word}: choose one of {kinds}")
    return kind, name


def find(objects: Objects, written: str, namespace: str) -> ObjectRef:
    """The object that a user has named: by its name, or by kind and name with a slash. Of several kinds with
    the same name the widest is meant. Raises UnknownObject."""
    kind, name = kind_and_name(written)
    matching = [(each, meta) for each, meta in objects.named() if not kind or each == kind]
    for each, meta in matching:
        if (meta.namespace, meta.name) == (namespace, name):
            return ObjectRef(each, name, namespace)
    known = [(meta.namespace, meta.name) for _, meta in matching]
    raise UnknownObject(unknown_name(kind or "workload", name, namespace, known))


def subtree(objects: Objects, about: ObjectRef) -> Subtree:
    """What belongs to an object that exists."""
    set_name = set_name_of(objects, about)
    if set_name is None:
        graph = _one(objects.graphs, about)
        return Subtree(about, graph)
    whole = _of_set(objects, about, set_name)
    match about.kind:
        case PodCliqueScalingGroup.KIND.name:
            cliques = [each for each in whole.cliques if _label(each, labels.GROUP) == about.name]
        case PodClique.KIND.name:
            cliques = [each for each in whole.cliques if each.metadata.name == about.name]
        case PodGang.KIND.name:
            cliques = [each for each in whole.cliques if _label(each, labels.GANG) == about.name]
        case kind if kind == POD:
            pod = _one(objects.pods, about)
            clique = _label(pod, labels.CLIQUE) if pod is not None else ""
            cliques = [each for each in whole.cliques if each.metadata.name == clique]
            return _part(whole, cliques, [pod] if pod is not None else [])
        case _:
            return whole
    names = {each.metadata.name for each in cliques}
    return _part(whole, cliques, [each for each in whole.pods if _label(each, labels.CLIQUE) in names])


def _part(whole: Subtree, cliques: list[PodClique], pods: list[Pod]) -> Subtree:
    gangs = {_label(each, labels.GANG) for each in cliques}
    groups = {_label(each, labels.GROUP) for each in cliques}
    return Subtree(
        whole.about,
        whole.graph,
        whole.workload,
        tuple(each for each in whole.groups if each.metadata.name in groups),
        tuple(cliques),
        tuple(each for each in whole.gangs if each.metadata.name in gangs),
        tuple(pods),
    )


def _of_set(objects: Objects, about: ObjectRef, name: str) -> Subtree:
    members = objects.by_set.get((about.namespace, name), Objects())
    workload = _one(objects.sets, ObjectRef("", name, about.namespace))
    key = owning_graph(workload.metadata) if workload is not None else None
    graph = _one(objects.graphs, ObjectRef("", key.name, key.namespace)) if key is not None else None
    return Subtree(about, graph, workload, members.groups, members.cliques, members.gangs, members.pods)


def set_name_of(objects: Objects, about: ObjectRef) -> str | None:
    """The set that an object is, or belongs to; None for a graph without one."""
    if about.kind == PodCliqueSet.KIND.name:
        return about.name
    if about.kind == DynamoGraphDeployment.KIND.name:
        owned = (
            each.metadata.name
            for each in objects.sets
            if (key := owning_graph(each.metadata)) is not None
            and (key.namespace, key.name) == (about.namespace, about.name)
        )
        return next(owned, None)
    found = next(
        meta
        for kind, meta in objects.named()
        if (kind, meta.namespace, meta.name) == (about.kind, about.namespace, about.name)
    )
    return found.labels.get(labels.PART_OF, "")


def _one(found: Iterable[_Any], ref: ObjectRef) -> _Any | None:
    return next(
        (
            each
            for each in found
            if (each.metadata.namespace, each.metadata.name) == (ref.namespace, ref.name)
        ),
        None,
    )


def _label(found: HasMetadata, key: str) -> str:
    return found.metadata.labels.get(key, "")
