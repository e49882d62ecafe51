"""Warnings about annotations that have no effect: misspelled keys, and keys in the wrong place.

Annotations are no fields: the API server accepts any key, and a misspelled one would be ignored in silence.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from enum import StrEnum
from itertools import islice

from grove import timing
from grove.api.naming import annotations as keys
from grove.api.naming.labels import GROVE_PREFIX
from grove.rules.decode import Workload
from grove.rules.model import Facts
from grove.rules.restart_units import unit_problem


class Place(StrEnum):
    """Where in a set an annotation has an effect."""

    SET = "the PodCliqueSet itself"
    GROUP = "scaling groups"
    CLIQUE = "cliques"


_PLACES: Mapping[str, tuple[Place, ...]] = {
    keys.AUTO_MNNVL: (Place.SET,),
    keys.MNNVL_CLAIMS: (Place.SET,),
    keys.MNNVL_GROUP: (Place.SET, Place.GROUP, Place.CLIQUE),
    keys.PACK_DOMAINS: (Place.SET,),
    keys.DISABLE_PROTECTION: (Place.SET,),
    keys.FORCE_DELETE_AFTER: (Place.SET,),
}
_OTHER_OBJECTS: Mapping[str, str] = {
    keys.SHARED_WITH_NAMESPACES: "ResourceClaimTemplates",
    keys.ALLOW_DELETE: "ComputeDomains",
    keys.RECREATE: "ComputeDomains",
}
"""Annotations that users set on other objects."""


def warnings(workload: Workload, facts: Facts) -> Iterator[str]:
    """Warnings about the annotations of a set, its groups and its cliques; only the first ones, because
    comparing a key with all known ones takes long."""
    return islice(_warnings(workload, facts, known=frozenset()), timing.ANNOTATION_WARNINGS)


def update_warnings(old: Workload, new: Workload, facts: Facts) -> Iterator[str]:
    """The same for the keys that an update adds."""
    known = frozenset(
        (path, key)
        for part, _, annotated, labels in _parts(old)
        for path, keyed in ((f"{part}.annotations", annotated), (f"{part}.labels", labels))
        for key in keyed
    )
    return islice(_warnings(new, facts, known), timing.ANNOTATION_WARNINGS)


def _warnings(workload: Workload, facts: Facts, known: AbstractSet[tuple[str, str]]) -> Iterator[str]:
    """Warnings about all keys but the `known` ones, which are pairs of a path and a key."""
    places = _known_places(facts)
    prefixes = (GROVE_PREFIX, *(provider.annotation_prefix for provider in facts.fabrics))
    for part, place, annotated, labels in _parts(workload):
        path = f"{part}.annotations"
        for key in annotated:
            if (path, key) in known or not key.lower().startswith(prefixes):
                continue
            if key.startswith(keys.RESTART_PREFIX) and place is Place.SET:
                problem = unit_problem(key, workload.template)
            else:
                problem = _problem(key, place, places)
            if problem:
                yield f"{path}.{key} {problem}"
        path = f"{part}.labels"
        for key in labels:
            if key in places and (path, key) not in known:
                yield f"{path}.{key} has no effect: it is an annotation"


def _known_places(facts: Facts) -> dict[str, tuple[Place, ...]]:
    """Where each annotation has an effect, with those of the vendors."""
    places = dict(_PLACES)
    for provider in facts.fabrics:
        places |= dict.fromkeys((provider.annotation_key, provider.scope_key), (Place.CLIQUE,))
        automatic = (Place.SET,) if provider.supports_auto else ()
        places |= dict.fromkeys(provider.options, (*automatic, Place.CLIQUE))
    return places


def _problem(key: str, place: Place, places: Mapping[str, tuple[Place, ...]]) -> str:
    if (expected := places.get(key)) is not None:
        return "" if place in expected else f"is ignored: set it on {' or '.join(expected)}"
    if key.startswith(keys.RESTART_PREFIX):
        return f"is ignored: set it on {Place.SET}"
    if (other := _OTHER_OBJECTS.get(key)) is not None:
        return f"is ignored: it is for {other}"
    close = difflib.get_close_matches(key.lower(), places, n=1, cutoff=timing.SUGGESTION_SIMILARITY)
    return "is not known and has no effect" + (f": did you mean {close[0]}?" if close else "")


def _parts(workload: Workload) -> Iterator[tuple[str, Place, Mapping[str, str], Mapping[str, str]]]:
    """The path of each part of a set, its annotations and its labels."""
    yield "metadata", Place.SET, workload.metadata.annotations, workload.metadata.labels
    for index, clique in enumerate(workload.template.cliques):
        yield f"spec.template.cliques[{index}]", Place.CLIQUE, clique.annotations, clique.labels
    for index, group in enumerate(workload.template.pod_clique_scaling_groups):
        yield f"spec.template.podCliqueScalingGroups[{index}]", Place.GROUP, group.annotations, {}
