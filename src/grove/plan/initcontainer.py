"""The init container that holds a pod back until those are ready after whom it starts."""

from __future__ import annotations

from typing import Any

from grove.api import labels, marks, names
from grove.plan.order import Awaited

Body = dict[str, Any]

_READABLE = 0o644


def with_init_container(spec: Body, set_name: str, image: str, awaited: Awaited) -> Body:
    """A pod spec in which ours comes after the init containers of the user."""
    volumes = [_token_volume(set_name), _pod_info_volume()]
    return {
        **spec,
        "initContainers": [*(spec.get("initContainers") or ()), _container(image, awaited)],
        "volumes": [*(spec.get("volumes") or ()), *volumes],
    }


def _container(image: str, awaited: Awaited) -> Body:
    return {
        "name": marks.INIT_CONTAINER,
        "image": image,
        "args": [f"--podcliques={clique}:{count}" for clique, count in awaited.items()],
        "volumeMounts": [
            {"name": marks.TOKEN_VOLUME, "mountPath": marks.TOKEN_MOUNT, "readOnly": True},
            {"name": marks.POD_INFO_VOLUME, "mountPath": marks.POD_INFO_MOUNT, "readOnly": True},
        ],
    }


def _token_volume(set_name: str) -> Body:
    secret = {"secretName": names.token_secret(set_name), "defaultMode": _READABLE}
    return {"name": marks.TOKEN_VOLUME, "secret": secret}


def _pod_info_volume() -> Body:
    items = [
        {"path": marks.POD_INFO_NAMESPACE, "fieldRef": {"fieldPath": "metadata.namespace"}},
        {"path": marks.POD_INFO_GANG, "fieldRef": {"fieldPath": f"metadata.labels['{labels.GANG}']"}},
    ]
    return {"name": marks.POD_INFO_VOLUME, "downwardAPI": {"items": items, "defaultMode": _READABLE}}
