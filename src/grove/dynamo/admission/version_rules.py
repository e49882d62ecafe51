"""Rules about the version that a graph is written in, before anything else is read from it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from grove import timing
from grove.api.field_errors import FieldError, forbidden
from grove.dynamo.api.common import ALPHA, BETA
from grove.dynamo.conversion.objects import VERSIONS, conversion_sizes, is_written_as
from grove.dynamo.graph import mapping

Body = dict[str, Any]

_FIELDS = {ALPHA: ("components", "services"), BETA: ("services", "components")}


def errors(new: Any, old: Any = None) -> Iterator[FieldError]:
    """Errors of a graph whose fields are those of the other version, or that is too large to be stored. Those
    that the old object had are not reported."""
    version = VERSIONS.get(str(mapping(new).get("apiVersion")))
    if version is None:
        return
    if not is_written_as(new, version) and (old is None or is_written_as(mapping(old), version)):
        wrong, right = _FIELDS[version]
        why = f"no field of {version}, which has {right}: correct the apiVersion, or write {right}"
        yield forbidden(f"spec.{wrong}", why)
    known = {str(each) for each in _size_errors(mapping(old), version)} if old is not None else set()
    yield from (each for each in _size_errors(new, version) if str(each) not in known)


def _size_errors(body: Body, version: str) -> Iterator[FieldError]:
    if version != ALPHA:
        return
    preserved, annotations = conversion_sizes(body, BETA)
    stored = f"have no equivalent in {BETA}, in which it is stored: write it in {BETA}"
    if preserved > timing.MAX_PRESERVED:
        yield forbidden("spec", f"more than {timing.MAX_PRESERVED // 1024} KiB {stored}")
    elif annotations > timing.MAX_ANNOTATIONS:
        most = f"more than {timing.MAX_ANNOTATIONS // 1024} KiB, with the fields that"
        yield forbidden("metadata.annotations", f"{most} {stored}, or apply it with --server-side")


def warnings(new: Any) -> Iterator[str]:
    """Warnings about a graph that clients of the other version cannot read."""
    if VERSIONS.get(str(mapping(new).get("apiVersion"))) != BETA:
        return
    if conversion_sizes(new, ALPHA)[1] > timing.MAX_ANNOTATIONS:
        most = timing.MAX_ANNOTATIONS // 1024
        yield (
            f"spec: clients of {ALPHA}, such as planners before Dynamo 1.4, do not get services: more than "
            f"{most} KiB, with the annotations, have no equivalent in {ALPHA}"
        )
