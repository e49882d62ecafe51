"""Converts a whole DynamoGraphDeployment, by its shape.

What a version cannot express is preserved in an annotation, as a part of the object in the other version.
Objects of earlier releases have `services` in v1beta1: their version alone does not say how they are
written.
"""

from __future__ import annotations

from typing import Any

import msgspec

from grove import timing
from grove.api.json_depth import too_deep
from grove.dynamo.api.common import ALPHA, BETA, NVIDIA
from grove.dynamo.conversion import specs, statuses
from grove.dynamo.conversion.preservation import Body
from grove.dynamo.conversion.specs import COMPONENTS, SERVICES
from grove.dynamo.graph import mapping

PRESERVED = {ALPHA: f"{NVIDIA}/dgd-{ALPHA}", BETA: f"{NVIDIA}/dgd-{BETA}"}
"""The annotation with what is preserved of each version; on objects of the other version."""
VERSIONS = {f"{NVIDIA}/{version}": version for version in (ALPHA, BETA)}
_KEYS = {ALPHA: SERVICES, BETA: COMPONENTS}
_OTHER = {ALPHA: BETA, BETA: ALPHA}
_ORIGIN = "writtenIn"
_PARTS: dict[str, Any] = {
    "spec": {BETA: specs.to_beta, ALPHA: specs.to_alpha},
    "status": {BETA: statuses.to_beta, ALPHA: statuses.to_alpha},
}


def converted(body: Body, version: str) -> Body:
    """The object in a version. Never fails, and changes no metadata other than its annotations. One with more
    to preserve than the API server allows in annotations keeps its spec and status: with larger annotations
    the conversion would fail, and with it each LIST of the version."""
    found = _converted(body, version)
    fits = _annotations_size(found) <= timing.MAX_ANNOTATIONS
    return found if fits else {**body, "apiVersion": found["apiVersion"]}


def _converted(body: Body, version: str) -> Body:
    claimed = VERSIONS.get(str(body.get("apiVersion")), BETA)
    preserved = _read(body, version)
    kept = preserved or {}
    found: Body = {**body, "apiVersion": f"{NVIDIA}/{version}"}
    left: Body = {}
    parts = [
        part
        for part in _PARTS
        if isinstance(body.get(part), dict) and _written_in(body, part, claimed) != version
    ]
    for part in parts:
        found[part], lost = _PARTS[part][version](body[part], mapping(kept.get(part)))
        left |= {part: lost} if lost else {}
    return _with_preserved(found, _OTHER[version], left, _origin(preserved, version)) if parts else found


def as_written(body: Body) -> Body:
    """The object in v1alpha1 if it was written in it, or if only that version expresses all of it."""
    preserved = _read(body, ALPHA)
    if preserved is None or (_origin(preserved, ALPHA) != ALPHA and "spec" not in preserved):
        return body
    spec = body.get("spec")
    if not isinstance(spec, dict) or _shape(spec, BETA) != BETA:
        return body
    return {**body, "spec": specs.to_alpha(spec, mapping(preserved.get("spec")))[0]}


def is_written_as(body: Body, version: str) -> bool:
    """Whether the spec has the shape of this version, whatever the object claims."""
    return _shape(mapping(body.get("spec")), version) == version


def conversion_sizes(body: Body, version: str) -> tuple[int, int]:
    """The bytes that are preserved of an object in a version, and those of all its annotations there."""
    found = _converted(body, version)
    preserved = _annotations(found).get(PRESERVED[_OTHER[version]], "")
    return len(preserved.encode()), _annotations_size(found)


def _written_in(body: Body, part: str, claimed: str) -> str:
    """The version of a part. Earlier releases stored specs in the shape of the other version, with a status
    of the claimed one; an object that was too large to be converted has both in the other shape."""
    spec = _shape(mapping(body.get("spec")), claimed)
    return spec if part == "spec" or spec == claimed else _shape(body[part], claimed)


def _shape(part: Body, claimed: str) -> str:
    if _KEYS[claimed] in part:
        return claimed
    return _OTHER[claimed] if _KEYS[_OTHER[claimed]] in part else claimed


def _origin(preserved: Body | None, version: str) -> str:
    """The version that an object was written in, by what is preserved of `version`."""
    if preserved is None:
        return _OTHER[version]
    return _OTHER[version] if preserved.get(_ORIGIN) == _OTHER[version] else version


def _annotations(body: Body) -> Body:
    return mapping(mapping(body.get("metadata")).get("annotations"))


def _annotations_size(body: Body) -> int:
    """Their size, as the API server counts it."""
    return sum(len(f"{key}{value}".encode(errors="replace")) for key, value in _annotations(body).items())


def _read(body: Body, version: str) -> Body | None:
    """What is preserved of a version; None if there is no annotation, or one that cannot be read."""
    text = _annotations(body).get(PRESERVED[version])
    if not isinstance(text, str) or too_deep(encoded := text.encode(errors="replace")):
        return None
    try:
        found = msgspec.json.decode(encoded)
    except (msgspec.DecodeError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _with_preserved(body: Body, version: str, preserved: Body, origin: str) -> Body:
    """The object with what is preserved of a version, and without what was preserved before. If it was
    written in this version, it has the annotation in any case: then it is rendered as such."""
    metadata = body.get("metadata")
    if not isinstance(metadata, dict):
        return body
    rest = {key: value for key, value in metadata.items() if key != "annotations"}
    known = mapping(metadata.get("annotations"))
    annotations = {key: value for key, value in known.items() if key not in PRESERVED.values()}
    if preserved or origin == version:
        content = preserved if origin == version else {**preserved, _ORIGIN: origin}
        annotations[PRESERVED[version]] = msgspec.json.encode(content, order="sorted").decode()
    return {**body, "metadata": {**rest, "annotations": annotations} if annotations else rest}
