"""The API resources of our kinds and of those of other projects.

Separate from the caches: commands that only list objects need nothing else of them.
"""

from __future__ import annotations

from grove.api.types.kind import ForeignKind, Kind
from grove.kube.client.resource import Resource


def resource_of(kind: Kind) -> Resource:
    """The API resource of one of our kinds."""
    return Resource(kind.group, kind.version, kind.plural, kind.name, kind.namespaced)


def external_resource(kind: ForeignKind) -> Resource:
    """The API resource of a kind of another project."""
    return Resource(kind.group, kind.version, kind.plural, kind.name, kind.namespaced)
