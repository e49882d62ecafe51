"""The commands and the output on the page about `grove plan`."""

from __future__ import annotations

import re
import shlex

import pytest
import yaml

from grove.cli.commands.plan import EXIT_CODES
from grove.cli.exit_codes import ExitCode
from grove.cli.main import main
from grove.cluster_state.snapshot_file import encode
from tests.cluster_state.states import shaped
from tests.pages import block, section
from tests.shared import ROOT

PAGE = "docs/plan.md"
DRAWN = re.compile(r"^(PodCliqueSet|[├└│ ])")


def commands(title: str) -> list[list[str]]:
    lines = (line for line in block(section(PAGE, title)) if line.startswith("grove "))
    return [shlex.split(line)[1:] for line in lines]


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return int(ended.value.code or 0), capsys.readouterr().out


def test_commands_to_try_print_what_the_page_shows(capsys, monkeypatch) -> None:
    monkeypatch.chdir(ROOT)
    first, second = commands("Try it")
    assert run(capsys, *first)[0] == ExitCode.OK
    code, out = run(capsys, *second)
    assert code == ExitCode.OK
    shown = [line[4:] for line in section(PAGE, "Try it").splitlines() if DRAWN.match(line[4:])]
    assert out.splitlines() == [line for line in shown if "do" not in line.split() and "whole-2" not in line]


def test_shortage_on_the_page_is_what_is_printed(capsys, monkeypatch, tmp_path) -> None:
    monkeypatch.chdir(ROOT)
    file = tmp_path / "three.yaml"
    file.write_text(
        (ROOT / "docs/examples/whole-racks.yaml").read_text().replace("replicas: 2", "replicas: 3", 1)
    )
    code, out = run(capsys, "plan", "-f", str(file), "--shape", "2x8")
    assert code == ExitCode.PROBLEM
    shown = [line[4:] for line in section(PAGE, "Try it").splitlines() if "whole-2" in line]
    assert len(shown) == 3
    assert out.endswith("\n".join(shown) + "\n")


def test_plan_on_a_snapshot_of_the_page(capsys, monkeypatch, tmp_path) -> None:
    """The snapshot itself is taken on a real cluster, in another test."""
    monkeypatch.chdir(ROOT)
    snapshot, plan = commands("Snapshots")
    assert snapshot[:2] == ["snapshot", ">"]
    assert plan[-1] == snapshot[2] == "~/cluster.json"
    file = tmp_path / "cluster.json"
    file.write_bytes(encode(shaped("1x1x2x8", 8, "local")))
    assert run(capsys, *plan[:-1], str(file))[0] == ExitCode.OK


def test_workflow_is_yaml_and_has_every_exit_code() -> None:
    text = section(PAGE, "In CI").partition("```yaml\n")[2].partition("```")[0]
    assert "grove" in yaml.safe_load(text)["jobs"]["plan"]["steps"][1]["run"]
    page = (ROOT / PAGE).read_text()
    assert all(f"| {code} |" in page for code in EXIT_CODES.values())
