"""The rights of the operator of a local cluster: rendered from the chart, so that `grove up --operator` runs
with those of an installed operator. `python -m tools.local_operator_rights` writes the file, and a test
compares it with the chart: rendering needs Helm, which `make check` does not."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import yaml

from grove.local.cluster.operator_install import NAMESPACE, RIGHTS
from grove.local.progress import ProgressReporter
from tools import helm

Body = dict[str, Any]
CHART = Path(__file__).resolve().parent.parent / "charts" / "grove"
VALUES = (
    "config.topologyAwareScheduling.enabled=true",
    "config.network.autoMNNVLEnabled=true",
    "admission.separate=false",
    "rbac.aggregate=false",
)
"""Those in which the configuration of a local operator differs from the chart's. Roles for users are left
out: the user of a local cluster is its administrator."""
_KINDS = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
_HEAD = "# Written by tools/local_operator_rights.py from the chart: do not edit.\n"


def page(program: Path) -> str:
    """The content of the file, with this Helm."""
    given = [part for value in VALUES for part in ("--set", value)]
    command = [program, "template", "grove", CHART, "--namespace", NAMESPACE, *given]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    documents = [each for each in yaml.load_all(text, yaml.CSafeLoader) if each]
    rights = [_without_labels(each) for each in documents if each["kind"] in _KINDS and not _is_hook(each)]
    return _HEAD + yaml.dump_all(rights, sort_keys=False, width=110)


def _is_hook(found: Body) -> bool:
    return "helm.sh/hook" in (found["metadata"].get("annotations") or {})


def _without_labels(found: Body) -> Body:
    """The labels name the release and the version of the chart, which a local cluster has not."""
    kept = {key: value for key, value in found["metadata"].items() if key in ("name", "namespace")}
    return {**found, "metadata": kept}


def main() -> None:
    from rich.console import Console

    RIGHTS.write_text(page(helm.find(ProgressReporter(Console()))), encoding="utf-8")


if __name__ == "__main__":
    main()
