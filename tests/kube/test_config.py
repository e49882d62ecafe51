"""Every way to be told where the cluster is, and every way to be told wrongly."""

from __future__ import annotations

import base64
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from grove.kube import config
from grove.kube.errors import ConfigError
from grove.kube.exec_plugin import ExecPlugin, ExecSpec
from tests.kube.authority import Authority


def kubeconfig(
    user: dict[str, Any] | None = None, cluster: dict[str, Any] | None = None, **more: Any
) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": "https://c:6443"} | (cluster or {})}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    } | more


def write(path: Path, content: dict[str, Any] | str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return path


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that knows of no cluster."""
    for name in (
        "KUBECONFIG",
        "KUBERNETES_SERVICE_HOST",
        "HTTPS_PROXY",
        "https_proxy",
        "NO_PROXY",
        "no_proxy",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


async def token_of(loaded: config.Config) -> str | None:
    return (await loaded.credentials.current()).authorization


async def test_a_file_is_read_with_its_current_context(tmp_path: Path) -> None:
    path = write(tmp_path / "kc", kubeconfig({"token": "t"}, {"tls-server-name": "real.name"}))
    loaded = config.load(path)
    assert (loaded.server, loaded.context, loaded.namespace) == ("https://c:6443", "x", "default")
    assert loaded.server_name == "real.name"
    assert loaded.insecure is False
    assert await token_of(loaded) == "Bearer t"


def test_verification_is_off_only_if_the_file_says_so(tmp_path: Path) -> None:
    path = write(tmp_path / "kc", kubeconfig(cluster={"insecure-skip-tls-verify": True}))
    assert config.load(path).insecure is True


async def test_a_token_of_digits_stays_text(tmp_path: Path) -> None:
    path = write(tmp_path / "kc", yaml.safe_dump(kubeconfig({"token": "TOKEN"})).replace("TOKEN", "0123"))
    assert await token_of(config.load(path)) == "Bearer 0123"


async def test_several_files_are_merged_and_the_first_to_name_a_thing_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = write(tmp_path / "1", {"users": [{"name": "u", "user": {"token": "first"}}], "clusters": None})
    second = write(tmp_path / "2", kubeconfig({"token": "second"}))
    monkeypatch.setenv("KUBECONFIG", f"{first}:{tmp_path / 'missing'}:{second}")
    loaded = config.load()
    assert loaded.server == "https://c:6443"
    assert await token_of(loaded) == "Bearer first"


def test_a_context_can_be_chosen(tmp_path: Path) -> None:
    contexts = [
        {"name": "x", "context": {"cluster": "c"}},
        {"name": "y", "context": {"cluster": "c", "namespace": "team"}},
    ]
    path = write(tmp_path / "kc", kubeconfig(contexts=contexts))
    assert config.load(path, context="y").namespace == "team"


async def test_relative_paths_are_relative_to_their_file(tmp_path: Path) -> None:
    write(tmp_path / "keys/token", "from-file\n")
    write(tmp_path / "keys/ca", "authority")
    user, cluster = {"tokenFile": "keys/token"}, {"certificate-authority": "keys/ca"}
    loaded = config.load(write(tmp_path / "kc", kubeconfig(user, cluster)))
    assert await token_of(loaded) == "Bearer from-file"
    assert loaded.authority is not None
    assert loaded.authority.read() == b"authority"


async def test_client_certificates_come_inline_or_by_file(tmp_path: Path) -> None:
    pair = Authority().issue("me")
    inline = {
        "client-certificate-data": base64.b64encode(pair.chain).decode(),
        "client-key-data": base64.b64encode(pair.key).decode(),
    }
    (tmp_path / "chain").write_bytes(pair.chain)
    (tmp_path / "key").write_bytes(pair.key)
    by_file = {"client-certificate": "chain", "client-key": "key"}
    for user in (inline, by_file):
        loaded = config.load(write(tmp_path / "kc", kubeconfig(user)))
        assert (await loaded.credentials.current()).certificate == pair


async def test_a_password_and_impersonation_become_headers(tmp_path: Path) -> None:
    user = {
        "username": "u",
        "password": "p",
        "as": "jane",
        "as-groups": ["a", "b"],
        "as-user-extra": {"scopes": ["view"]},
    }
    loaded = config.load(write(tmp_path / "kc", kubeconfig(user)))
    assert await token_of(loaded) == "Basic dTpw"
    assert loaded.headers == (
        ("Impersonate-User", "jane"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b"),
        ("Impersonate-Extra-scopes", "view"),
    )


async def test_the_pods_own_service_account_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in (("token", "t"), ("ca.crt", "ca"), ("namespace", "grove-system")):
        write(tmp_path / "sa" / name, text)
    monkeypatch.setattr(config, "SERVICE_ACCOUNT", tmp_path / "sa")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "6443")
    loaded = config.load()
    assert (loaded.server, loaded.namespace) == ("https://[fd00::1]:6443", "grove-system")
    assert await token_of(loaded) == "Bearer t"


async def test_a_rotated_token_file_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(tmp_path / "token", "old")
    loaded = config.load(write(tmp_path / "kc", kubeconfig({"tokenFile": str(file)})))
    now = 100.0
    monkeypatch.setattr("grove.kube.sources.time.monotonic", lambda: now)
    assert await token_of(loaded) == "Bearer old"
    write(tmp_path / "next", "new").rename(file)
    assert await token_of(loaded) == "Bearer old", "not looked at on every request"
    now += 1.5
    assert await token_of(loaded) == "Bearer new"
    write(tmp_path / "next", "newest").rename(file)
    loaded.credentials.doubt()
    assert await token_of(loaded) == "Bearer newest", "looked at at once when refused"


@pytest.mark.parametrize(
    ("server", "no_proxy", "proxy"),
    [
        ("https://far:6443", "", "http://proxy:3128"),
        ("https://far:6443", "far", None),
        ("https://127.0.0.1:6443", "", None),
        ("https://localhost:6443", "", None),
    ],
)
def test_the_environments_proxy_is_used_except_for_loopback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: str, no_proxy: str, proxy: str | None
) -> None:
    monkeypatch.setenv("https_proxy", "http://proxy:3128")
    monkeypatch.setenv("no_proxy", no_proxy)
    assert config.load(write(tmp_path / "kc", kubeconfig(cluster={"server": server}))).proxy == proxy


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a:\n  b: [}", r"is not YAML at line 2 \(.+\): mend it"),
        ("- 1", "is not a kubeconfig"),
        (kubeconfig(users=[{"name": "u", "user": {"token": {}}}]), "is not a kubeconfig"),
        (kubeconfig(**{"current-context": ""}), "sets no current-context: run kubectl config use-context"),
        (kubeconfig(**{"current-context": "z"}), "context 'z' is not in .*: choose one of: x"),
        (kubeconfig(clusters=[]), "cluster 'c' is not in .*: choose one of: none is defined"),
        (kubeconfig(users=[]), "user 'u' is not in"),
        (kubeconfig(cluster={"server": "c:6443"}), "has server 'c:6443': give it an https:// address"),
        (kubeconfig(cluster={"certificate-authority-data": "%"}), "certificate authority is not base64"),
        (kubeconfig({"client-certificate-data": "YQ=="}), "needs its key"),
        (kubeconfig({"auth-provider": {"name": "gcp"}}), "use an exec plugin"),
        (kubeconfig({"exec": {"apiVersion": "v1"}}), "has no command"),
    ],
)
def test_a_wrong_file_is_one_line_that_names_the_remedy(tmp_path: Path, content: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        config.load(write(tmp_path / "kc", content))
    assert "\n" not in str(caught.value)


def test_absent_files_are_said_to_be_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="no cluster to talk to: set KUBECONFIG"):
        config.load()
    with pytest.raises(ConfigError, match="does not exist: check the path"):
        config.load(tmp_path / "missing")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "missing"))
    with pytest.raises(ConfigError, match=r"no file of KUBECONFIG=.* exists"):
        config.load()


def test_an_unreadable_file_is_said_to_be_unreadable(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"cannot be read \(Is a directory\): check its path, owner and mode"
    ):
        config.load(tmp_path)
    (tmp_path / "kc").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="not text"):
        config.load(tmp_path / "kc")


async def test_a_token_file_that_is_gone_names_the_file(tmp_path: Path) -> None:
    loaded = config.load(write(tmp_path / "kc", kubeconfig({"tokenFile": "gone"})))
    with pytest.raises(ConfigError, match=r"token file .*/gone cannot be read \(No such file"):
        await loaded.credentials.current()


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


async def test_a_plugin_runs_once_until_its_credential_is_refused(tmp_path: Path) -> None:
    loaded = plugin(tmp_path, {"token": "t"})
    assert [await token_of(loaded), await token_of(loaded)] == ["Bearer t", "Bearer t"]
    assert (tmp_path / "runs").read_text() == "x"
    loaded.credentials.doubt()
    await token_of(loaded)
    assert (tmp_path / "runs").read_text() == "xx"


async def test_a_plugins_credential_is_renewed_before_it_expires(tmp_path: Path) -> None:
    loaded = plugin(tmp_path, {"token": "t", "expirationTimestamp": "2020-01-01T00:00:00Z"})
    await token_of(loaded)
    await token_of(loaded)
    assert (tmp_path / "runs").read_text() == "xx"


async def test_a_plugin_may_give_a_client_certificate_and_learn_of_the_cluster(tmp_path: Path) -> None:
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
    ("spec", "words"),
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
async def test_a_plugin_that_fails_says_so_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spec: dict[str, Any], words: str
) -> None:
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(ConfigError, match=words) as caught:
        await plugin(tmp_path, {"token": "t"}, **spec).credentials.current()
    assert "\n" not in str(caught.value)


async def test_a_plugin_that_gives_nothing_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="neither a token nor a client certificate"):
        await plugin(tmp_path, {}).credentials.current()


async def test_a_plugin_that_hangs_is_stopped_with_all_it_started(tmp_path: Path) -> None:
    # The shell's child holds the pipes too: left alone, waiting for their end would take a minute.
    spec = ExecSpec("u", "sh", ("-c", "sleep 60 & wait"), interactive="Never")
    with pytest.raises(ConfigError, match=r"did not finish in 0\.2 s: run it by hand"):
        await ExecPlugin(spec, timeout=0.2).current()
