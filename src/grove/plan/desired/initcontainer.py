"""Adds the init container that delays a pod until the cliques that it starts after are ready."""

from __future__ import annotations

from typing import Any

from grove.api.naming import labels, names, well_known
from grove.plan.desired.startup_order import StartupParents

Body = dict[str, Any]

_READABLE = 0o644


def with_init_container(spec: Body, set_name: str, image: str, startup_parents: StartupParents) -> Body:
    """Returns the pod spec with our init container after those of the user."""
    volumes = [_token_volume(set_name), _pod_info_volume()]
    return {
        **spec,
        "initContainers": [*(spec.get("initContainers") or ()), _container(image, startup_parents)],
        "volumes": [*(spec.get("volumes") or ()), *volumes],
    }


def _container(image: str, startup_parents: StartupParents) -> Body:
    return {
        "name": well_known.INIT_CONTAINER,
        "image": image,
        "args": [f"--podcliques={clique}:{count}" for clique, count in startup_parents.items()],
        "volumeMounts": [
            {"name": well_known.TOKEN_VOLUME, "mountPath": well_known.TOKEN_MOUNT, "readOnly": True},
            {"name": well_known.POD_INFO_VOLUME, "mountPath": well_known.POD_INFO_MOUNT, "readOnly": True},
        ],
    }


def _token_volume(set_name: str) -> Body:
    secret = {"secretName": names.token_secret(set_name), "defaultMode": _READABLE}
    return {"name": well_known.TOKEN_VOLUME, "secret": secret}


def _pod_info_volume() -> Body:
    items = [
        {"path": well_known.POD_INFO_NAMESPACE, "fieldRef": {"fieldPath": "metadata.namespace"}},
        {"path": well_known.POD_INFO_GANG, "fieldRef": {"fieldPath": f"metadata.labels['{labels.GANG}']"}},
    ]
    return {"name": well_known.POD_INFO_VOLUME, "downwardAPI": {"items": items, "defaultMode": _READABLE}}
