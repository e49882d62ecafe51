"""Every graph of the shared test data is rendered as Dynamo's own renderer does it."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from grove.dynamo.admission import graph_validation
from grove.dynamo.admission.defaults import default_graph
from grove.dynamo.keys import WORKER_HASH
from tests.dynamo.builders import KNOWN, graph, rendered
from tests.shared import shared_data

NAMES = [
    f"{version}-{name}"
    for version in ("v1alpha1", "v1beta1")
    for name in (
        "mocker_deploy_disagg",
        "vllm_deploy_agg",
        "vllm_deploy_disagg",
        "vllm_deploy_disagg-multinode",
    )
]


def example(name: str) -> dict[str, Any]:
    text = (shared_data("dynamo") / "input" / f"{name}.yaml").read_text()
    (body,) = (each for each in yaml.safe_load_all(text) if each)
    body["metadata"]["namespace"] = "ns"
    return body


def expected(name: str) -> Any:
    text = (shared_data("dynamo") / "expected" / f"{name}.yaml").read_text()
    return next(yaml.safe_load_all(text))


def comparable(value: Any) -> Any:
    """The set without the fields that tests/dynamo/README.md lists."""
    if isinstance(value, dict):
        ignored = {"status", "apiVersion", WORKER_HASH} | ({"kind"} if "apiVersion" in value else set())
        return {
            key: comparable(inner)
            for key, inner in value.items()
            if key not in ignored and not (key == "resources" and inner == {})
        }
    if isinstance(value, list):
        return [comparable(inner) for inner in value if not (isinstance(inner, dict) and _of_workers(inner))]
    return value


def _of_workers(variable: dict[str, Any]) -> bool:
    return variable.get("name") == "DYN_NAMESPACE_WORKER_SUFFIX"


def test_every_example_has_expected_output():
    assert {path.stem for path in (shared_data("dynamo") / "input").iterdir()} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_example_renders_as_in_dynamo(name):
    assert comparable(rendered(example(name))) == comparable(expected(name))


@pytest.mark.parametrize("name", NAMES)
def test_example_is_admitted_and_defaults_change_nothing(name):
    body = default_graph(example(name), creating=True)
    assert graph_validation.on_create(body, KNOWN).errors == ()
    assert comparable(rendered(body)) == comparable(expected(name))


def test_both_versions_of_example_have_same_components():
    for name in ("mocker_deploy_disagg", "vllm_deploy_agg"):
        older, newer = (graph(example(f"{version}-{name}")) for version in ("v1alpha1", "v1beta1"))
        assert [(each.name, each.type) for each in older.components] == [
            (each.name, each.type) for each in newer.components
        ]
