"""The message about a vendor whose domain kind is not served."""

from __future__ import annotations

from grove.fabrics.provider import FabricDomainProvider


def unserved_kind(provider: FabricDomainProvider, *, outdated: bool) -> str:
    """What is wrong, and what the user can do. `outdated`: the CRD exists and serves other versions only."""
    api = provider.api
    if outdated:
        return f"{api.crd_name} does not serve {api.version}: {provider.advice} in a version that does"
    return f"{api.crd_name} is not served: {provider.advice}"
