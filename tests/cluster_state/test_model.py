"""What could not be read of a cluster, as lines."""

from __future__ import annotations

from grove.cluster_state.model import UnreadKind, unread_lines


def forbidden(label: str) -> UnreadKind:
    return UnreadKind(label, f"no right to list {label} in the whole cluster (403 Forbidden)")


def test_kinds_with_the_same_reason_share_a_line() -> None:
    """Those of the core first: nodes decide about most."""
    known = "only those of namespace team are known"
    wrong = UnreadKind("pods", "cannot be decoded: team/x")
    unread = [forbidden("leases.coordination.k8s.io"), UnreadKind("pods", known), forbidden("nodes"), wrong]
    assert unread_lines([*unread, UnreadKind("services", known)]) == (
        "no right to list them in the whole cluster (403 Forbidden): nodes, leases.coordination.k8s.io",
        "only those of namespace team are known: pods, services",
        "pods: cannot be decoded: team/x",
    )


def test_single_kind_is_named_first() -> None:
    line = "nodes: no right to list nodes in the whole cluster (403 Forbidden)"
    assert unread_lines([forbidden("nodes")]) == (line,)
