"""Helpers for providers: claims in pod specs, quantities of accelerators, and names of domains."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from typing import Any

from grove.api.formats.quantities import parse
from grove.api.types.kind import ForeignKind
from grove.fabrics.provider import Policy, Scope

Body = dict[str, Any]

CLAIMS = ForeignKind("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim")
SHARED = "*"
"""Stands for a claim that the set shares: all containers of a pod use it, whatever its name."""
LONGEST = {Scope.SHARED: 63, Scope.REPLICA: 58, Scope.GROUP_REPLICA: 53}
"""The maximum length of a domain's name: it becomes the value of a label, and each index takes up to five
characters."""
_IS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?").fullmatch


def with_claim(
    pod_spec: Body, claim: str, template: str, accelerated: Callable[[Body], bool], policy: Policy
) -> Body:
    """The pod spec with a claim from a template, for the containers that the policy selects. The user's own
    claims keep their order and come first."""
    containers, inits = _list(pod_spec, "containers"), _list(pod_spec, "initContainers")
    use = [accelerated(each) for each in containers]
    inits_use = [accelerated(each) for each in inits]
    if not any(use) and not any(inits_use):
        if policy is Policy.ACCELERATED_ONLY:
            return pod_spec
        use = [True] * len(containers)
    claims = _list(pod_spec, "resourceClaims")
    changed = {**pod_spec, "containers": _claiming(containers, use, claim)}
    if any(inits_use):
        changed["initContainers"] = _claiming(inits, inits_use, claim)
    if all(known.get("name") != claim for known in claims):
        changed["resourceClaims"] = [*claims, {"name": claim, "resourceClaimTemplateName": template}]
    return changed


def accelerated_or_claimed(
    accelerated: Callable[[Body], bool], by_claim: Collection[str]
) -> Callable[[Body], bool]:
    """Whether a container has accelerators, from its own resources or from one of these claims of its pod."""
    return lambda container: accelerated(container) or uses(container, by_claim)


def uses(container: Mapping[str, Any], claims: Collection[str]) -> bool:
    """Whether a container uses one of these claims of its pod."""
    if SHARED in claims:
        return True
    used = (container.get("resources") or {}).get("claims") or ()
    return any(claim.get("name") in claims for claim in used)


def asks_for(container: Mapping[str, Any], resource: str) -> bool:
    """Whether the limits or requests of a container have more than 0 of a resource, in any notation."""
    resources = container.get("resources") or {}
    return any(_some((resources.get(part) or {}).get(resource)) for part in ("limits", "requests"))


def amount(quantities: Mapping[str, Any], resource: str) -> int:
    """The whole number of a resource; 0 if the quantity cannot be parsed."""
    return _whole(str(quantities.get(resource) or 0))


@lru_cache(maxsize=256)
def _whole(quantity: str) -> int:
    """Cached: thousands of nodes have the same number of accelerators, and parsing is slow."""
    try:
        return int(parse(quantity))
    except ValueError:
        return 0


def name_errors(value: str, scope: Scope) -> list[str]:
    """What is wrong with the name of a domain, for any vendor."""
    if not value:
        return ["must not be empty: it is the name of the domain"]
    wrong = []
    if not _IS_LABEL(value):
        wrong.append(
            "must consist of lower case alphanumeric characters or '-', and start and end with an "
            "alphanumeric character"
        )
    if len(value) > LONGEST[scope]:
        wrong.append(f"must be no more than {LONGEST[scope]} characters with scope {scope}")
    return wrong


def _some(amount: object) -> bool:
    if amount is None:
        return False
    try:
        return parse(str(amount)) != 0
    except ValueError:
        return True  # the API server will reject it: until then it counts as a request


def _claiming(containers: list[Body], use: list[bool], claim: str) -> list[Body]:
    return [
        _with_claim(each, claim) if chosen else each for each, chosen in zip(containers, use, strict=True)
    ]


def _with_claim(container: Body, claim: str) -> Body:
    resources = container.get("resources") or {}
    claims = resources.get("claims") or []
    if any(known.get("name") == claim for known in claims):
        return container
    return {**container, "resources": {**resources, "claims": [*claims, {"name": claim}]}}


def _list(spec: Body, field: str) -> list[Body]:
    return spec.get(field) or []
