"""Runs every command of docs/install.md, in the order of the page."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from grove.kube.client.client import Client
from grove.local.build import binaries
from grove.local.cluster.lifecycle import LocalCluster
from tests import chart
from tests.cluster.chart.chart_operator import local_values, operator_of
from tests.cluster.chart.job_runner import running_jobs
from tests.shared import ROOT

pytestmark = pytest.mark.cluster


def scripts_of(page: str) -> Iterator[tuple[str, str]]:
    """The commands by heading."""
    text = re.sub(r"```.*?```", "", (ROOT / page).read_text(), flags=re.DOTALL)  # without sample files
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        heading, _, text = section.partition("\n")
        if lines := [line[4:] for line in text.splitlines() if line.startswith("    ")]:
            yield heading, "\n".join(lines)


@pytest.fixture
def shell(site: LocalCluster, control_plane: binaries.Binaries, tmp_path: Path) -> dict[str, str]:
    """A reader's environment: a cluster, `kubectl`, `grove`, and a `helm` with values for local addresses."""
    values = tmp_path / "local.yaml"
    values.write_text(yaml.safe_dump(local_values()))
    tools = tmp_path / "bin"
    tools.mkdir()
    programs = {
        "kubectl": f'exec {control_plane["kubectl"]} "$@"',
        "grove": f'exec {sys.executable} -c "from grove.cli.main import main; main()" "$@"',
        "helm": f'[ "$1" = upgrade ] && set -- "$@" --values {values}; exec {chart.program()} "$@"',
    }
    for name, line in programs.items():
        (tools / name).write_text(f"#!/bin/bash\n{line}\n")
        (tools / name).chmod(0o755)
    return {**os.environ, "KUBECONFIG": str(site.kubeconfig), "PATH": f"{tools}:{os.environ['PATH']}"}


async def run_commands(script: str, shell: dict[str, str]) -> str:
    """Run commands in a shell; returns the output."""
    process = await asyncio.create_subprocess_exec(
        "bash",
        "-euo",
        "pipefail",
        "-c",
        script,
        cwd=ROOT,
        env=shell,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, f"{script}\n{output.decode()}"
    return output.decode()


async def test_install_page_commands_work(
    site: LocalCluster, admin: Client, shell: dict[str, str], tmp_path: Path
) -> None:
    first, *rest = scripts_of("docs/install.md")
    installing, _, trying = first[1].partition("kubectl apply")
    assert [heading for heading, _ in rest] == [
        "Change something",
        "The dashboard",
        "Rights",
        "Upgrade",
        "Uninstall",
    ]
    async with running_jobs(site, admin) as ran:
        await run_commands(installing, shell)
        async with operator_of(site, admin, tmp_path):  # KWOK's nodes do not run the Deployment
            await run_commands(f"kubectl apply{trying}", shell)
            for _, script in rest[:-1]:
                await run_commands(script, shell)
        await run_commands(rest[-1][1], shell)
    assert [(each.job, each.code) for each in ran] == [("grove-crds", 0)] * 4 + [("grove-detach", 0)]
