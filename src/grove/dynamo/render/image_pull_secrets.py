"""Discovers image pull Secrets of a component, as Dynamo does: all Secrets of the namespace for the
registries of its images, in addition to those that it names.

The Secrets are part of the pod template, so that a Secret that is created later would replace running pods
which have their images already. A new Secret is therefore added only as long as no pod of the latest template
has started, or when the template changes anyway; deleted Secrets are removed then, too.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from grove.api.types.podcliqueset import PodCliqueSet
from grove.api.wire import Wire
from grove.dynamo import keys, naming
from grove.dynamo.api.pull_secret import matches_registry, registry_of
from grove.dynamo.graph import Body, Graph, GraphComponent
from grove.dynamo.render import pod_template

Secrets = Mapping[str, frozenset[str]] | None
"""The registries of each Secret, by name; None if not known."""
Names = tuple[str, ...]


class _Reference(Wire, frozen=True):
    name: str = ""


class _PodSpec(Wire, frozen=True):
    image_pull_secrets: tuple[_Reference, ...] = ()


def matching_secrets(graph: Graph, component: GraphComponent, secrets: Secrets, known: Names = ()) -> Names:
    """The Secrets for the images of a component, without those that it names itself; the current ones if the
    Secrets are not known: an operator on which discovery was disabled later takes none away, since new pods
    may need them."""
    if pod_template.pod_annotations(graph, component).get(keys.NO_PULL_SECRETS, "").lower() == "true":
        return ()
    if secrets is None:
        return known
    containers = (component.main, *component.sidecars, *component.pod.get("initContainers", ()))
    wanted = {registry_of(str(each["image"])) for each in containers if each.get("image")}
    fit = {
        name
        for name, known in secrets.items()
        if any(matches_registry(entry, one) for entry in known for one in wanted)
    }
    return tuple(sorted(fit - _own(component)))


def current_secrets(component: GraphComponent, pod_spec: Body) -> Names:
    """The discovered Secrets in the stored pod spec of a component."""
    return _current_secrets(component, msgspec.convert(pod_spec, _PodSpec))


def current_secrets_in_set(component: GraphComponent, workload: PodCliqueSet | None) -> Names:
    """The discovered Secrets of a component in a set; leader and workers have the same."""
    name = naming.clique(component, naming.LEADER if component.multinode else "")
    for clique in workload.spec.template.cliques if workload is not None else ():
        if clique.name == name:
            return _current_secrets(component, msgspec.json.decode(clique.spec.pod_spec, type=_PodSpec))
    return ()


def _current_secrets(component: GraphComponent, spec: _PodSpec) -> Names:
    names = [each.name for each in spec.image_pull_secrets]
    return tuple(name for name in names if name not in _own(component))


def _own(component: GraphComponent) -> set[str]:
    return {str(each.get("name", "")) for each in component.pod.get("imagePullSecrets", ())}


def select_secrets(fit: Names, known: Names, *, changes: bool, started: bool) -> Names:
    """The matching Secrets if using them replaces no started pod, else the current ones."""
    return fit if changes or (has_new(fit, known) and not started) else known


def has_new(fit: Names, known: Names) -> bool:
    """Whether any matching Secret is not among the current ones."""
    return not set(fit) <= set(known)


def set_pull_secrets(pod_spec: Body, component: GraphComponent, discovered: Names) -> None:
    """Set the Secrets of a rendered pod spec, in place: those that the component names come first."""
    own = component.pod.get("imagePullSecrets", ())
    if references := [*own, *({"name": name} for name in discovered)]:
        pod_spec["imagePullSecrets"] = references
    else:
        pod_spec.pop("imagePullSecrets", None)
