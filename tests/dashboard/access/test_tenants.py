"""Users that one tenant can make."""

from __future__ import annotations

import pytest

from grove.dashboard.access.tenants import tenant_of


@pytest.mark.parametrize(
    ("user", "tenant"),
    [
        ("system:serviceaccount:a:robot", "system:serviceaccount:a"),
        ("system:serviceaccount:a", ""),
        ("system:serviceaccounts:a:b", ""),
        ("jane", ""),
        ("10.0.0.1", ""),
    ],
)
def test_tenant_is_the_namespace_of_a_service_account(user: str, tenant: str) -> None:
    assert tenant_of(user) == tenant
