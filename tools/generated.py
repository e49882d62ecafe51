"""Files that are generated from the code: written by `make fix`, checked by `make check`.

A generator returns the content of its files by path. Add new generators to GENERATORS.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.growth import draw
from bench.growth.report import RESULTS

from grove.api.crds import crd
from grove.cli.commands.crds import render
from grove.dynamo.api import crd_definitions
from tools import cli_reference, reason_words, reference, values_schema
from tools.versions import page as versions_page

ROOT = Path(__file__).resolve().parent.parent
CRDS = Path("charts/grove/crds")

DYNAMO_CRDS = Path("charts/grove/files/dynamo")
_KEPT = {"helm.sh/resource-policy": "keep"}
"""Keeps the CRDs of Dynamo, which are templates of the chart, when a release is uninstalled: without it all
DynamoGraphDeployments would be deleted with them."""

Files = dict[Path, str]


def crds() -> Files:
    """The chart's CustomResourceDefinitions."""
    return {
        CRDS / f"{each['spec']['group']}_{each['spec']['names']['plural']}.yaml": render(each)
        for each in crd.all_definitions()
    }


def dynamo_crds() -> Files:
    """The CustomResourceDefinitions of Dynamo, which the chart installs if Dynamo is enabled."""
    kept = [
        each | {"metadata": each["metadata"] | {"annotations": _KEPT}}
        for each in crd_definitions.all_definitions()
    ]
    return {
        DYNAMO_CRDS / f"{each['spec']['group']}_{each['spec']['names']['plural']}.yaml": render(each)
        for each in kept
    }


def api_reference() -> Files:
    """The API reference."""
    return {Path("docs/api-reference.md"): reference.page()}


def command_line() -> Files:
    """The reference of the command line."""
    return {Path("docs/cli.md"): cli_reference.page()}


def chart_values() -> Files:
    """The schema of the chart's values."""
    return {Path("charts/grove/values.schema.json"): values_schema.page()}


def dashboard_words() -> Files:
    """What reasons mean, for the pages of the dashboard."""
    path = Path("src/grove/dashboard/static/js/pages/parts/reason_words.js")
    return {path: reason_words.page()}


def kubernetes_versions() -> Files:
    """The page of what is enforced on which version of Kubernetes."""
    return {Path("docs/kubernetes-versions.md"): versions_page.page()}


def growth_curves() -> Files:
    """The curves of `make bench-growth`; none before its first results."""
    text = draw.svg(RESULTS.read_text()) if RESULTS.exists() else ""
    return {draw.PICTURE.relative_to(ROOT): text} if text else {}


GENERATORS: tuple[Callable[[], Files], ...] = (
    crds,
    dynamo_crds,
    api_reference,
    command_line,
    chart_values,
    kubernetes_versions,
    dashboard_words,
    growth_curves,
)
OWNED_FOLDERS = (CRDS, DYNAMO_CRDS)
"""Folders with only generated files: other files in them are obsolete."""


def stale(root: Path, files: Files) -> Iterator[Path]:
    """Files that are missing, that differ, or that are no longer generated."""
    for path, content in files.items():
        if not (root / path).is_file() or (root / path).read_text() != content:
            yield path
    for folder in OWNED_FOLDERS:
        yield from (
            each.relative_to(root) for each in (root / folder).glob("*") if _unknown(root, each, files)
        )


def write(root: Path, files: Files) -> None:
    """Write the files under `root`, and delete obsolete ones."""
    for path in list(stale(root, files)):
        target = root / path
        if path not in files:
            target.unlink()
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(files[path])


def main() -> int:
    """Write the files, or with --check list those that are out of date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file is out of date")
    files = {path: content for generator in GENERATORS for path, content in generator().items()}
    if not parser.parse_args().check:
        write(ROOT, files)
        return 0
    if behind := sorted(str(path) for path in stale(ROOT, files)):
        sys.stderr.write(f"out of date, run make fix: {', '.join(behind)}\n")
    return 1 if behind else 0


def _unknown(root: Path, path: Path, files: Files) -> bool:
    return path.relative_to(root) not in files


if __name__ == "__main__":
    sys.exit(main())
