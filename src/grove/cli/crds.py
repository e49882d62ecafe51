"""`grove crds`: the CustomResourceDefinitions, as they are in the chart."""

from __future__ import annotations

import sys
from typing import Any

import yaml

from grove.api import crd


class _Plain(yaml.CSafeDumper):
    """Schemas repeat themselves; anchors and aliases would save space and help no reader."""

    def ignore_aliases(self, _data: object) -> bool:
        return True


def crds() -> None:
    """Print the CustomResourceDefinitions, for `kubectl apply --server-side -f -`."""
    sys.stdout.write("".join(render(definition) for definition in crd.all_definitions()))


def render(definition: dict[str, Any]) -> str:
    """One YAML document, the same on every run."""
    return "---\n" + yaml.dump(definition, Dumper=_Plain, width=110)
