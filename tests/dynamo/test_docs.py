"""What docs/dynamo.md says: its example works, and what it lists as refused is."""

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


def test_the_example_is_admitted_and_becomes_a_set_that_grove_takes():
    body = yaml.safe_load((ROOT / "docs/examples/dynamo.yaml").read_text())
    body["metadata"]["namespace"] = "ns"
    body = default_graph(body, creating=True)
    verdict = graph_validation.on_create(body, KNOWN)
    assert (verdict.errors, verdict.warnings) == ((), ())
    assert validation.on_create(default_set(rendered(body, ON_KAI)), FACTS).errors == ()


def test_every_field_that_is_refused_is_listed():
    listed = set(re.findall(r"`(\w+)`", section("docs/dynamo.md", "What is refused")))
    assert listed >= unsupported_fields.FIELDS
