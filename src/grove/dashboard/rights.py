"""What a viewer may see. Data only."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class Rights(Struct, frozen=True):
    """What one user may list. Users with equal rights see the same picture."""

    namespaces: frozenset[str] | None = None
    """The namespaces whose workloads they see: those in which they may list every kind that the page shows.
    None: all namespaces."""
    nodes: bool = True
    """Whether they may list nodes. Without, they see no node and nothing that others use."""
    unread: tuple[str, ...] = ()
    """What they do not see and why, a line each."""
    own: bool = False
    """Whether they have started the server, with their own kubeconfig: then they may read all of its
    problems."""

    def sees(self, namespace: str) -> bool:
        """Whether the workloads of a namespace are visible."""
        return self.namespaces is None or namespace in self.namespaces

    def reads_problems_of(self, namespace: str) -> bool:
        """Whether they may read what the API server says about a namespace; an empty one: about any."""
        return self.own or self.sees(namespace)


class User(Struct, frozen=True):
    """A user, as a token review describes them."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = {}
