"""Credential plugins: when they run, what they return, and how they fail."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from grove.kube.auth import config
from grove.kube.auth.exec_plugin import ExecPlugin, ExecSpec
from grove.kube.errors import ConfigError
from tests.kube.auth.kubeconfigs import kubeconfig, token_of, write
from tests.kube.certificate_authority import Authority

PLUGIN = """
import json, os, pathlib, sys
runs = pathlib.Path(sys.argv[1]); runs.write_text(runs.read_text() + "x" if runs.exists() else "x")
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
status = json.loads(os.environ["STATUS"])
if status.get("token") == "ECHO":
    status["token"] = info["spec"]["cluster"]["server"]
print(json.dumps({"apiVersion": info["apiVersion"], "kind": "ExecCredential", "status": status}))
"""


def plugin(tmp_path: Path, status: dict[str, Any], **more: Any) -> config.Config:
    script = write(tmp_path / "plugin.py", PLUGIN)
    spec = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": sys.executable,
        "args": [str(script), str(tmp_path / "runs")],
        "env": [{"name": "STATUS", "value": msgspec.json.encode(status).decode()}],
        "interactiveMode": "Never",
    }
    return config.load(write(tmp_path / "kc", kubeconfig({"exec": spec | more})))


async def test_plugin_runs_again_after_rejected_credential(tmp_path: Path) -> None:
    loaded = plugin(tmp_path, {"token": "t"})
    assert [await token_of(loaded), await token_of(loaded)] == ["Bearer t", "Bearer t"]
    assert (tmp_path / "runs").read_text() == "x"
    loaded.credentials.invalidate()
    await token_of(loaded)
    assert (tmp_path / "runs").read_text() == "xx"


async def test_plugin_runs_again_before_credential_expires(tmp_path: Path) -> None:
    loaded = plugin(tmp_path, {"token": "t", "expirationTimestamp": "2020-01-01T00:00:00Z"})
    await token_of(loaded)
    await token_of(loaded)
    assert (tmp_path / "runs").read_text() == "xx"


async def test_plugin_gets_cluster_and_returns_certificate(tmp_path: Path) -> None:
    pair = Authority().issue("me")
    status = {
        "token": "ECHO",
        "clientCertificateData": pair.chain.decode(),
        "clientKeyData": pair.key.decode(),
        "expirationTimestamp": "2999-01-01T00:00:00Z",
    }
    credential = await plugin(tmp_path, status, provideClusterInfo=True).credentials.current()
    assert credential.certificate == pair
    assert credential.authorization == "Bearer https://c:6443"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"command": "grove-no-such-plugin"}, r"cannot be started \(No such file or directory\): install it"),
        (
            {"command": "grove-no-such-plugin", "installHint": "get it\nhere"},
            "cannot be started .*: get it here",
        ),
        (
            {"command": "sh", "args": ["-c", "echo no >&2; exit 3"]},
            r"failed with exit code 3 \(no\): log in again",
        ),
        ({"command": "echo", "args": ["hello"]}, "did not print an ExecCredential"),
        ({"interactiveMode": "Always"}, "needs a terminal and there is none"),
        ({"args": ["-c", 'print(\'{"apiVersion": "v0", "kind": "X"}\')']}, "printed v0 X"),
    ],
)
async def test_plugin_failure_is_an_error_of_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spec: dict[str, Any], message: str
) -> None:
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(ConfigError, match=message) as caught:
        await plugin(tmp_path, {"token": "t"}, **spec).credentials.current()
    assert "\n" not in str(caught.value)


async def test_plugin_without_credential_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="neither a token nor a client certificate"):
        await plugin(tmp_path, {}).credentials.current()


async def test_hanging_plugin_is_killed_with_its_children(tmp_path: Path) -> None:
    # The shell's child has the pipes open too: if it were not killed, reading them would take a minute.
    spec = ExecSpec("u", "sh", ("-c", "sleep 60 & wait"), interactive="Never")
    with pytest.raises(ConfigError, match=r"did not finish in 0\.2 s: run it by hand"):
        await ExecPlugin(spec, timeout=0.2).current()
