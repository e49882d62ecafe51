"""The schemas of Kubernetes' types in our CRDs, compared with those of earlier releases.

The API server reads stored objects with the schema of the current CRD. So an upgrade of the CRDs must not
drop a field, add or remove a default, or refuse an object that was accepted: pods would be replaced, or their
set could no longer be changed.
"""

from __future__ import annotations

import msgspec
import pytest
from tools.openapi_union import covers

from grove.api.crds import openapi
from grove.api.crds.openapi import Extract
from tests.upgrade import recordings


@pytest.mark.parametrize("release", recordings.schema_releases())
def test_earlier_schema_is_covered(release: str) -> None:
    assert covers(openapi.extract(), recordings.load_schemas(release))


@pytest.mark.parametrize("release", recordings.schema_releases())
def test_defaults_are_those_of_earlier_release(release: str) -> None:
    assert defaults(openapi.extract()) == defaults(recordings.load_schemas(release))


def test_every_recorded_release_has_schemas() -> None:
    assert recordings.schema_releases() == sorted({name.partition("/")[0] for name in recordings.names()})


@pytest.mark.parametrize(
    "change",
    [
        lambda definition: definition["properties"].pop("hostname"),
        lambda definition: definition["properties"].update(more={"type": "string", "default": "a"}),
        lambda definition: definition.update(required=["containers", "hostname"]),
        lambda definition: definition["properties"]["hostname"].update(format="date-time"),
    ],
    ids=["dropped field", "new default", "newly required", "new format"],
)
def test_comparison_finds_breaking_change(change) -> None:
    changed = msgspec.json.decode(msgspec.json.encode(openapi.extract()), type=Extract)
    change(changed.definitions["io.k8s.api.core.v1.PodSpec"])
    assert not covers(changed, recordings.load_schemas("0.1.0"))


def defaults(extract: Extract) -> dict[tuple[str, str], object]:
    """The defaults that the API server applies: those of optional fields."""
    return {
        (name, field): schema["default"]
        for name, definition in extract.definitions.items()
        for field, schema in definition.get("properties", {}).items()
        if schema.get("default") not in (None, {}) and field not in definition.get("required", ())
    }
