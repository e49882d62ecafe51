"""`grove crds`."""

from __future__ import annotations

import subprocess
import sys

import pytest
import yaml

from grove.api.crds import crd
from grove.cli.commands.crds import crds
from grove.cli.main import main
from grove.dynamo.api import crd_definitions
from tests.shared import ROOT


def test_crds_prints_those_of_the_chart(capsys):
    crds()
    printed = capsys.readouterr().out
    files = [path.read_text() for path in (ROOT / "charts/grove/crds").iterdir()]
    assert sorted(printed.split("---\n")) == sorted("".join(files).split("---\n"))
    assert list(yaml.load_all(printed, Loader=yaml.CSafeLoader)) == crd.all_definitions()


def test_dynamo_crds_are_printed_only_on_request(capsys):
    crds(dynamo=True)
    printed = list(yaml.load_all(capsys.readouterr().out, Loader=yaml.CSafeLoader))
    assert printed == crd_definitions.all_definitions()


@pytest.mark.parametrize("command", [["crds", "--apply"], ["detach"]])
def test_apply_without_cluster_prints_one_line(command, monkeypatch, capsys):
    monkeypatch.setenv("KUBECONFIG", "/nowhere")
    with pytest.raises(SystemExit) as ended:
        main(command)
    assert ended.value.code == 1
    assert capsys.readouterr().err == "grove: no file of KUBECONFIG=/nowhere exists: correct or unset it\n"


@pytest.mark.parametrize("option", ["--kubeconfig", "--context"])
def test_cluster_option_without_apply_is_refused(option, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["crds", option, "somewhere"])
    assert ended.value.code == 1
    printed = capsys.readouterr()
    assert (printed.out, printed.err.count("\n")) == ("", 1)
    assert printed.err.startswith(
        f"grove: {option} somewhere: the CRDs are printed, and no cluster is used: "
    )


def test_crds_is_a_command():
    run = subprocess.run(
        [sys.executable, "-c", "from grove.cli.main import main; main(['crds'])"],
        capture_output=True,
        check=True,
        text=True,
    )
    assert run.stdout.startswith("---\napiVersion: apiextensions.k8s.io/v1\n")
    assert run.stderr == ""
