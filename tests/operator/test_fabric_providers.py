"""Fabric providers of other projects, found by entry point."""

from __future__ import annotations

from pathlib import Path

import pytest

from grove.api.configuration.loading import ConfigurationError
from grove.api.configuration.types import OperatorConfiguration
from grove.operator.fabric_providers import load_providers


@pytest.fixture
def other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another installed project with a fabric provider."""
    dist_info = tmp_path / "fabric-1.dist-info"
    dist_info.mkdir()
    (dist_info / "METADATA").write_text("Metadata-Version: 2.1\nName: fabric\nVersion: 1\n")
    (dist_info / "entry_points.txt").write_text(
        "[grove.fabric_domains]\nexample = other_fabric:make\nworse = other_fabric:missing\n"
    )
    (tmp_path / "other_fabric.py").write_text("from tests.fabrics.example_vendor import Example as make\n")
    monkeypatch.syspath_prepend(tmp_path)


def vendors(*listed: str) -> list[str]:
    return [provider.vendor for provider in load_providers(OperatorConfiguration(fabrics=listed))]


def test_external_provider_is_loaded_if_listed(other: None):
    assert vendors("nvidia", "example") == ["example", "nvidia"]
    assert vendors("nvidia") == ["nvidia"]
    with pytest.raises(ConfigurationError) as wrong:
        vendors("worse", "unknown")
    broken, unknown = wrong.value.problems
    assert broken.startswith("fabrics[0]: worse cannot be used: AttributeError: ")
    assert unknown.startswith("fabrics[1]: no fabric vendor unknown: ")
