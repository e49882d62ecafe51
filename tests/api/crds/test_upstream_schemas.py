"""Our CRDs compared with upstream's: docs/decisions/compat.md lists every difference with its reason."""

from __future__ import annotations

import pytest
import yaml

from grove.api.crds import crd
from grove.api.types.clustertopology import ClusterTopology
from grove.api.types.registry import KINDS
from tests.api.crds import schema_differences
from tests.api.crds.schema_differences import Difference
from tests.shared import ROOT, shared_data

COMPARED = [kind for kind in KINDS if kind is not ClusterTopology]
PAGE = ROOT / "docs" / "decisions" / "compat.md"


def differences(kind: type) -> list[Difference]:
    about = kind.KIND
    file = shared_data("crds/grove") / f"{about.group}_{about.plural}.yaml"
    upstream = yaml.load(file.read_text(), Loader=yaml.CSafeLoader)
    return list(schema_differences.between(crd.definition(kind), upstream))


@pytest.mark.parametrize("kind", COMPARED, ids=lambda kind: kind.__name__)
def test_each_upstream_schema_difference_is_listed(kind):
    rows = schema_differences.listed(PAGE)
    found = differences(kind)
    assert found, "the comparison found no difference, not even the category"
    assert [each for each in found if not any(each.is_covered_by(row) for row in rows)] == []


def test_each_listed_difference_still_exists():
    found = [each for kind in COMPARED for each in differences(kind)]
    rows = schema_differences.listed(PAGE)
    assert [row for row in rows if not any(each.is_covered_by(row) for each in found)] == []


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"maximum": 3}, Difference("podgangs", ".spec.podgroups[].minReplicas", "maximum")),
        ({"type": "string"}, Difference("podgangs", ".spec.podgroups[].minReplicas", "type")),
        ({"properties": {"x": {}}}, Difference("podgangs", ".spec.podgroups[].minReplicas.x", "only here")),
    ],
)
def test_comparison_reports_changed_field(changed, what):
    (upstream,) = (each for each in crd.all_definitions() if each["spec"]["names"]["plural"] == "podgangs")
    (ours,) = (each for each in crd.all_definitions() if each["spec"]["names"]["plural"] == "podgangs")
    groups = ours["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"][
        "podgroups"
    ]
    groups["items"]["properties"]["minReplicas"] |= changed
    assert list(schema_differences.between(ours, upstream)) == [what]
