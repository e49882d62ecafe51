"""`grove detach`: its command line. `tests/cluster/chart` runs it on a cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from grove.cli.main import main

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: here
clusters: [{name: here, cluster: {server: "http://127.0.0.1:9"}}]
contexts: [{name: here, context: {cluster: here, user: me}}]
users: [{name: me, user: {}}]
"""


def test_detach_with_unknown_fabric_prints_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = tmp_path / "kubeconfig"
    file.write_text(KUBECONFIG)
    with pytest.raises(SystemExit) as ended:
        main(["detach", "--fabrics=nvidia,amd", "--kubeconfig", str(file)])
    assert ended.value.code == 1
    expected = "grove: --fabrics[1]: no fabric vendor amd: use one of nvidia\n"
    assert capsys.readouterr().err == expected
