"""docs/dynamo.md: its example is admitted, and it lists all fields that are rejected."""

from __future__ import annotations

import re

import yaml

from grove.dynamo.admission import graph_validation, unsupported_fields
from grove.dynamo.admission.defaults import default_graph
from grove.rules.podcliqueset import validation
from grove.rules.podcliqueset.defaults import default_set
from tests.dynamo.builders import FACTS, KNOWN, ON_KAI, rendered
from tests.pages import section
from tests.shared import ROOT


def test_example_is_admitted_and_renders_valid_set():
    body = yaml.safe_load((ROOT / "docs/examples/dynamo.yaml").read_text())
    body["metadata"]["namespace"] = "ns"
    body = default_graph(body, creating=True)
    verdict = graph_validation.on_create(body, KNOWN)
    assert (verdict.errors, verdict.warnings) == ((), ())
    assert validation.on_create(default_set(rendered(body, ON_KAI)), FACTS).errors == ()


def test_all_unsupported_fields_are_documented():
    listed = set(re.findall(r"`(\w+)`", section("docs/dynamo.md", "What is refused")))
    assert listed >= unsupported_fields.FIELDS
