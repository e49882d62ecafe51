"""A set and the objects below it by their names, as kubectl writes and reads them. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from grove.cli.structured_output import object_name
from grove.views.set_view import CliqueView, SetView


def object_names(view: SetView, *, pods: bool = True) -> Iterator[str]:
    """Each object once, parents before children."""
    yield object_name("PodCliqueSet", view.name)
    for replica in view.members:
        yield from (object_name("PodGang", gang.name) for gang in replica.gangs)
        for clique in replica.cliques:
            yield from _clique(clique, pods)
        for group in replica.groups:
            yield object_name("PodCliqueScalingGroup", group.name)
            for member in group.members:
                for clique in member.cliques:
                    yield from _clique(clique, pods)


def _clique(clique: CliqueView, pods: bool) -> Iterator[str]:
    yield object_name("PodClique", clique.name)
    if pods:
        yield from (object_name("Pod", pod.name) for pod in clique.pods)
