"""Recordings of live sets: every object of a namespace as a build of the operator left it.

A release adds a folder with its own recordings, and the schemas of Kubernetes' types in its CRDs
(`GROVE_RECORD=<release>`, see CONTRIBUTING.md); none is ever changed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from grove.api.crds.openapi import Extract
from tools import kubernetes_openapi

FOLDER = Path(__file__).parent / "recordings"
SCHEMAS = Path(__file__).parent / "schemas"
Body = dict[str, Any]


class Recording(Struct, frozen=True):
    """The objects of one namespace, and the configuration of the operator that created them."""

    name: str
    at: float
    """Time of the recording: seconds since 1970, by the operator's clock."""
    options: dict[str, Any]
    """Options that differ from the defaults: `topologyAware`, `fabrics`, `autoFabric`, `dynamo`."""
    objects: list[Body]

    def of(self, kind: str) -> list[Body]:
        return [body for body in self.objects if body["kind"] == kind]


def names() -> list[str]:
    """`<release>/<scenario>` of every recording."""
    return sorted(f"{file.parent.name}/{file.stem}" for file in FOLDER.glob("*/*.json"))


def load(name: str) -> Recording:
    body = json.loads((FOLDER / f"{name}.json").read_text())
    return Recording(name, body["at"], body["options"], body["objects"])


def save(recording: Recording) -> None:
    """The recording with one object per line, so that the file and its diffs are readable."""
    file = FOLDER / f"{recording.name}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    head = f'{{"at": {recording.at}, "options": {json.dumps(recording.options)}, "objects": [\n'
    lines = (json.dumps(body, sort_keys=True) for body in map(_shortened, recording.objects))
    file.write_text(head + ",\n".join(lines) + "\n]}\n")


def _shortened(body: Body) -> Body:
    metadata = {key: value for key, value in body["metadata"].items() if key != "managedFields"}
    return {**body, "metadata": metadata}


def pods(recording: Recording) -> Iterator[Body]:
    yield from recording.of("Pod")


def schema_releases() -> list[str]:
    return sorted(file.stem for file in SCHEMAS.glob("*.json"))


def load_schemas(release: str) -> Extract:
    return msgspec.json.decode((SCHEMAS / f"{release}.json").read_bytes(), type=Extract)


def save_schemas(release: str, extract: Extract) -> None:
    (SCHEMAS / f"{release}.json").write_text(kubernetes_openapi.render(extract))
