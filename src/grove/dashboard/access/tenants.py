"""Users that one tenant can make: the ServiceAccounts of a namespace. Pure."""

from __future__ import annotations

_SERVICE_ACCOUNT = "system:serviceaccount:"


def tenant_of(user: str) -> str:
    """The namespace of a ServiceAccount, with the prefix that their users have; empty for other users."""
    namespace, _, name = user.removeprefix(_SERVICE_ACCOUNT).partition(":")
    return f"{_SERVICE_ACCOUNT}{namespace}" if user.startswith(_SERVICE_ACCOUNT) and name else ""
