"""What a snapshot file does not contain: values of environment variables and of HTTP headers of probes,
annotations of other tools, also in templates, field managers, and the contents of ConfigMaps and Secrets,
which are never read. Commands and their arguments stay, without values that are secret by their names.

The revision of a pod template is a hash of all of it. So where a value is removed from a template, the hashes
that objects of its set carry are replaced by the hash of the template without the value: a plan from the
snapshot then sees which pods are up to date.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Raw

from grove.api.json_depth import too_deep
from grove.api.types.podcliqueset import PodCliqueSet
from grove.cluster_state.secret_text import REMOVED, without_secret_arguments
from grove.dynamo.conversion.objects import PRESERVED
from grove.plan.desired.template_hash import generation_hash, template_hash

_VARIABLES = frozenset({"env", "envs", "httpHeaders"})
_COMMANDS = frozenset({"command", "args"})
_KEPT_ANNOTATIONS = (
    "grove.io/",
    "nvidia.com/",
    "resource.kubernetes.io/",
    "storageclass.kubernetes.io/is-default-class",
)

Body = dict[str, Any]


def redacted(body: Body) -> Body:
    """An object without what a snapshot does not contain."""
    metadata: Body = {key: each for key, each in body.get("metadata", {}).items() if key != "managedFields"}
    rest = {key: each for key, each in body.items() if key not in ("metadata", "data")}
    cleaned: Body = without_values({**rest, "metadata": metadata})
    return cleaned


def without_values(found: Any) -> Any:
    """JSON without values that users may want to keep to themselves, and without annotations of others."""
    if isinstance(found, list):
        return [without_values(each) for each in found]
    if not isinstance(found, dict):
        return found
    cleaned = {key: _value(key, value) for key, value in found.items() if key != "annotations"}
    if kept := _annotations(found.get("annotations")):
        cleaned["annotations"] = kept
    return cleaned


def _value(key: str, found: Any) -> Any:
    if key in _VARIABLES:
        return _variables(found)
    if key in _COMMANDS and isinstance(found, list):
        return without_secret_arguments(found)
    return without_values(found)


def _annotations(found: Any) -> Any:
    """Those that the operator reads; what is no mapping is none."""
    if not isinstance(found, dict):
        return None
    return {
        key: _without_values_in(each) if key in PRESERVED.values() else each
        for key, each in found.items()
        if _is_kept(key)
    }


def _without_values_in(text: Any) -> Any:
    """An annotation with a part of a DynamoGraphDeployment in its other version, as JSON."""
    if not isinstance(text, str) or too_deep(encoded := text.encode(errors="replace")):
        return REMOVED
    try:
        return msgspec.json.encode(without_values(msgspec.json.decode(encoded)), order="sorted").decode()
    except (msgspec.DecodeError, ValueError):
        return REMOVED


def _variables(found: Any) -> Any:
    """A list of variables, or a mapping, as free-form fields may have it, without the values."""
    if isinstance(found, list):
        return [
            {**each, "value": REMOVED} if isinstance(each, dict) and "value" in each else each
            for each in found
        ]
    return dict.fromkeys(found, REMOVED) if isinstance(found, dict) else found


def _is_kept(annotation: str) -> bool:
    domain = annotation.partition("/")[0] + "/"
    return any(
        annotation == each or domain == each or domain.endswith(f".{each}") for each in _KEPT_ANNOTATIONS
    )


def changed_hashes(sets: Iterable[Raw]) -> dict[str, str]:
    """By hash of a template of a set, the hash of the template without what a snapshot does not contain."""
    found: dict[str, str] = {}
    for item in sets:
        before = _read(bytes(item))
        after = _read(msgspec.json.encode(redacted(msgspec.json.decode(item))))
        if before is not None and after is not None:
            found |= dict(zip(_hashes(before), _hashes(after), strict=True))
    return {before: after for before, after in found.items() if before != after}


def with_hashes(found: Any, hashes: Mapping[str, str]) -> Any:
    """JSON with other hashes of templates. They are digests of 64 bits: no other text is equal to one."""
    if isinstance(found, str):
        return hashes.get(found, found)
    if isinstance(found, list):
        return [with_hashes(each, hashes) for each in found]
    if isinstance(found, dict):
        return {key: with_hashes(value, hashes) for key, value in found.items()}
    return found


def _read(text: bytes) -> PodCliqueSet | None:
    try:
        return msgspec.json.decode(text, type=PodCliqueSet)
    except msgspec.MsgspecError:
        return None


def _hashes(workload: PodCliqueSet) -> list[str]:
    template = workload.spec.template
    of_cliques = [template_hash(each, template.priority_class_name) for each in template.cliques]
    return [*of_cliques, generation_hash(workload)]
