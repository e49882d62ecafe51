"""The objects of a set by their names, and the views of sets whose pods were not read."""

from __future__ import annotations

from msgspec.structs import replace

from grove.cli.views.object_names import object_names
from grove.views.set_view import set_views
from tests.views.builders import NOW, a_simulator, found, view


def test_every_object_is_named_once():
    seen = view(a_simulator())
    names = list(object_names(seen))
    assert len(names) == len(set(names))
    assert names[:3] == [
        "podcliqueset.grove.io/demo",
        "podgang.scheduler.grove.io/demo-0",
        "podgang.scheduler.grove.io/demo-0-model-0",
    ]
    assert sum(name.startswith("pod/") for name in names) == len(seen.pods) == 5
    assert not [name for name in object_names(seen, pods=False) if name.startswith("pod/")]


def test_statuses_count_pods_that_were_not_read():
    objects = found(a_simulator())
    cliques = tuple(replace(each, status=replace(each.status, ready_replicas=7)) for each in objects.cliques)
    (seen,) = set_views(replace(objects, cliques=cliques, pods=None), NOW)
    assert {clique.ready for clique in seen.cliques} == {7}
    assert seen.pods == ()
    (read,) = set_views(replace(objects, cliques=cliques), NOW)
    assert {clique.ready for clique in read.cliques} != {7}
