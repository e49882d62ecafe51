"""Output formats of commands whose results programs read as well."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from grove.cli.options import Output
from grove.cli.printable import escaped_json, printable


def is_text(output: Output) -> bool:
    """Whether a format is for people."""
    return output in ("table", "wide")


def is_structured(output: Output) -> bool:
    """Whether a format is that of `write_structured`."""
    return output in ("json", "yaml")


def write_structured(value: object, output: Output) -> None:
    """Write a value of structs as JSON or YAML."""
    import msgspec

    if output == "json":
        text = escaped_json(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())
    else:
        import yaml

        plain: Any = msgspec.json.decode(msgspec.json.encode(value))
        text = "---\n" + yaml.dump(plain, Dumper=yaml.CSafeDumper, sort_keys=False, width=110).rstrip()
    sys.stdout.write(text + "\n")


def write_names(names: Iterable[str]) -> None:
    """Write one name on each line, as of `object_name`."""
    sys.stdout.write("".join(f"{printable(name)}\n" for name in names))


_GROVE = "grove.io"
_GROUPS = {
    "ClusterTopology": _GROVE,
    "ClusterTopologyBinding": _GROVE,
    "DynamoGraphDeployment": "nvidia.com",
    "PodClique": _GROVE,
    "PodCliqueScalingGroup": _GROVE,
    "PodCliqueSet": _GROVE,
    "PodGang": "scheduler.grove.io",
    "ResourceClaim": "resource.k8s.io",
}
"""The API groups of kinds outside of the core group."""


def object_name(kind: str, name: str) -> str:
    """An object as kubectl writes and reads it: `pod/a`, `podcliqueset.grove.io/demo`."""
    group = _GROUPS.get(kind, "")
    return f"{kind.lower()}.{group}/{name}" if group else f"{kind.lower()}/{name}"
