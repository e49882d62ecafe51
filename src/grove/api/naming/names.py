"""Names of objects, and the reverse: fixed by the contract, built here and nowhere else.

Indices count from 0. Identity is never read back from a name: the labels say who somebody is. A name can only
speak against them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

MAX_USER_NAMES_LENGTH = 45
"""How long the names a user chooses may be, taken together; of 63, the rest is for hyphens and indices."""
_SUFFIX_LENGTH = 8
"""Five, as Kubernetes has it, would let two of a clique's 1000 pods meet once in a hundred times or so."""
_SHORTEST_SUFFIX = 5
_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
"""Kubernetes' choice for generated names: without vowels, no words."""


def clique(set_name: str, replica: int, template: str) -> str:
    """A PodClique that belongs to no scaling group."""
    return f"{set_name}-{replica}-{template}"


def group(set_name: str, replica: int, template: str) -> str:
    """A PodCliqueScalingGroup."""
    return f"{set_name}-{replica}-{template}"


def autoscaler(set_name: str, replica: int, template: str) -> str:
    """The HorizontalPodAutoscaler of a clique or group: named like what it scales."""
    return f"{set_name}-{replica}-{template}"


def group_replica(group_name: str, replica: int) -> str:
    """One replica of a scaling group, as gangs call it: there is no object of this name."""
    return f"{group_name}-{replica}"


def member_clique(group_name: str, group_index: int, template: str) -> str:
    """A PodClique of a scaling group."""
    return f"{group_name}-{group_index}-{template}"


def base_gang(set_name: str, replica: int) -> str:
    """The PodGang that holds all a replica needs to work at all."""
    return f"{set_name}-{replica}"


def scaled_gang(group_name: str, group_index: int, min_available: int) -> str:
    """The PodGang of a group's replica beyond `minAvailable`; the first of them is number 0."""
    return f"{group_name}-{group_index - min_available}"


def service(set_name: str, replica: int) -> str:
    """The headless Service of a replica."""
    return f"{set_name}-{replica}"


def service_host(set_name: str, replica: int, namespace: str) -> str:
    """Where that Service is found by DNS."""
    return f"{service(set_name, replica)}.{namespace}.svc.cluster.local"


def pod(clique_name: str, clique_uid: str, index: int, predecessor: str = "") -> str:
    """A pod. Follows from its clique, its index and the pod it replaces: planned twice it is the same pod,
    and no name comes twice."""
    digest = hashlib.sha256(f"{clique_uid}/{index}/{predecessor}".encode()).digest()
    number = int.from_bytes(digest[:8], "big")
    letters = []
    for _ in range(_SUFFIX_LENGTH):
        number, letter = divmod(number, len(_SUFFIX_LETTERS))
        letters.append(_SUFFIX_LETTERS[letter])
    return f"{clique_name}-{''.join(letters)}"


def is_pod_name(name: str, clique_name: str) -> bool:
    """Whether a pod of the clique could have this name: one that we gave it, or Kubernetes for upstream."""
    stem, _, suffix = name.rpartition("-")
    return stem == clique_name and len(suffix) >= _SHORTEST_SUFFIX and set(suffix) <= set(_SUFFIX_LETTERS)


def pod_host(clique_name: str, index: int) -> str:
    """The hostname of a pod; a replacement takes over the one of its predecessor."""
    return f"{clique_name}-{index}"


def index_of_host(host: str) -> int | None:
    """The index of the pod with this hostname; None if it is not one of ours."""
    digits = host.rpartition("-")[2]
    return int(digits) if digits.isdecimal() else None


def service_account(set_name: str) -> str:
    """The ServiceAccount whose token init containers use."""
    return set_name


def role(set_name: str) -> str:
    """The Role of that ServiceAccount, and the RoleBinding."""
    return f"grove.io:pcs:{set_name}"


def token_secret(set_name: str) -> str:
    """The Secret with its token."""
    return f"{set_name}-ic-sat"


def init_image(repository: str, version: str) -> str:
    """The init container's image: of the operator's version, unless a tag or digest is chosen."""
    chosen = "@" in repository or ":" in repository.rpartition("/")[2]
    return repository if chosen or not repository else f"{repository}:{version}"


def claim_for_all_replicas(owner: str, template: str) -> str:
    """A ResourceClaim that all replicas of its owner share."""
    return f"{owner}-all-{template}"


def claim_for_replica(owner: str, index: int, template: str) -> str:
    """A ResourceClaim for one replica, or one pod, of its owner."""
    return f"{owner}-{index}-{template}"


def compute_domain(set_name: str, replica: int) -> str:
    """The automatic ComputeDomain of a replica; also its ResourceClaimTemplate."""
    return f"{set_name}-{replica}"


def grouped_compute_domain(set_name: str, replica: int, group: str) -> str:
    """The ComputeDomain of a replica's cliques in one `grove.io/mnnvl-group`."""
    return f"{set_name}-{replica}-{group}"


def named_compute_domain(name: str, *indices: int) -> str:
    """The ComputeDomain that cliques ask for by name: for all, for a replica, or for a group's replica."""
    return "-".join((name, *map(str, indices)))


def user_names_length(names: Iterable[str]) -> int:
    """How long the names a user chose are, taken together; at most LONGEST_CHOSEN."""
    return sum(map(len, names))
