"""The configuration of the cluster connection: where it is found, and the errors of invalid ones."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml

from grove.kube.auth import config
from grove.kube.errors import ConfigError
from tests.kube.auth.kubeconfigs import kubeconfig, token_of, write
from tests.kube.certificate_authority import Authority


@pytest.fixture(autouse=True)
def no_cluster_configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment without any configuration of a cluster."""
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


async def test_kubeconfig_is_loaded_with_its_current_context(tmp_path: Path) -> None:
    path = write(tmp_path / "kc", kubeconfig({"token": "t"}, {"tls-server-name": "real.name"}))
    loaded = config.load(path)
    assert (loaded.server, loaded.context, loaded.namespace) == ("https://c:6443", "x", "default")
    assert loaded.server_name == "real.name"
    assert loaded.insecure is False
    assert await token_of(loaded) == "Bearer t"


def test_tls_verification_is_off_only_if_configured(tmp_path: Path) -> None:
    path = write(tmp_path / "kc", kubeconfig(cluster={"insecure-skip-tls-verify": True}))
    assert config.load(path).insecure is True


async def test_token_of_digits_stays_text(tmp_path: Path) -> None:
    path = write(tmp_path / "kc", yaml.safe_dump(kubeconfig({"token": "TOKEN"})).replace("TOKEN", "0123"))
    assert await token_of(config.load(path)) == "Bearer 0123"


async def test_first_file_wins_when_kubeconfigs_are_merged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = write(tmp_path / "1", {"users": [{"name": "u", "user": {"token": "first"}}], "clusters": None})
    second = write(tmp_path / "2", kubeconfig({"token": "second"}))
    monkeypatch.setenv("KUBECONFIG", f"{first}:{tmp_path / 'missing'}:{second}")
    loaded = config.load()
    assert loaded.server == "https://c:6443"
    assert await token_of(loaded) == "Bearer first"


def test_load_uses_the_given_context(tmp_path: Path) -> None:
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


async def test_client_certificate_is_read_inline_or_from_file(tmp_path: Path) -> None:
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


async def test_password_and_impersonation_become_headers(tmp_path: Path) -> None:
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


async def test_service_account_is_used_inside_a_pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in (("token", "t"), ("ca.crt", "ca"), ("namespace", "grove-system")):
        write(tmp_path / "sa" / name, text)
    monkeypatch.setattr(config, "SERVICE_ACCOUNT", tmp_path / "sa")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "6443")
    loaded = config.load()
    assert (loaded.server, loaded.namespace) == ("https://[fd00::1]:6443", "grove-system")
    assert await token_of(loaded) == "Bearer t"


async def test_rotated_token_file_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(tmp_path / "token", "old")
    loaded = config.load(write(tmp_path / "kc", kubeconfig({"tokenFile": str(file)})))
    now = 100.0
    monkeypatch.setattr("grove.kube.auth.secret_source.time.monotonic", lambda: now)
    assert await token_of(loaded) == "Bearer old"
    write(tmp_path / "next", "new").rename(file)
    assert await token_of(loaded) == "Bearer old", "the file is not checked for every request"
    now += 1.5
    assert await token_of(loaded) == "Bearer new"
    write(tmp_path / "next", "newest").rename(file)
    loaded.credentials.invalidate()
    assert await token_of(loaded) == "Bearer newest", "the file is read at once after a rejection"


@pytest.mark.parametrize(
    ("server", "no_proxy", "proxy"),
    [
        ("https://far:6443", "", "http://proxy:3128"),
        ("https://far:6443", "far", None),
        ("https://127.0.0.1:6443", "", None),
        ("https://localhost:6443", "", None),
    ],
)
def test_proxy_of_environment_is_not_used_for_loopback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: str, no_proxy: str, proxy: str | None
) -> None:
    monkeypatch.setenv("https_proxy", "http://proxy:3128")
    monkeypatch.setenv("no_proxy", no_proxy)
    assert config.load(write(tmp_path / "kc", kubeconfig(cluster={"server": server}))).proxy == proxy


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a:\n  b: [}", r"is not YAML at line 2 \(.+\): correct it"),
        ("- 1", "is not a kubeconfig"),
        (kubeconfig(users=[{"name": "u", "user": {"token": {}}}]), "is not a kubeconfig"),
        (kubeconfig(**{"current-context": ""}), "sets no current-context: run kubectl config use-context"),
        (kubeconfig(**{"current-context": "z"}), "context 'z' is not in .*: choose one of: x"),
        (kubeconfig(clusters=[]), "cluster 'c' is not in .*: choose one of: none is defined"),
        (kubeconfig(users=[]), "user 'u' is not in"),
        (kubeconfig(cluster={"server": "c:6443"}), "has server 'c:6443': give it an https:// address"),
        (
            kubeconfig(cluster={"server": "https://c:port"}),
            "has server 'https://c:port': give it an https://",
        ),
        (kubeconfig(cluster={"server": "https://[::1"}), r"has server 'https://\[::1': give it an https://"),
        (kubeconfig(cluster={"certificate-authority-data": "%"}), "certificate authority is not base64"),
        (kubeconfig({"client-certificate-data": "YQ=="}), "needs its key"),
        (kubeconfig({"auth-provider": {"name": "gcp"}}), "use an exec plugin"),
        (kubeconfig({"exec": {"apiVersion": "v1"}}), "has no command"),
    ],
)
def test_invalid_kubeconfig_error_names_the_remedy(tmp_path: Path, content: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        config.load(write(tmp_path / "kc", content))
    assert "\n" not in str(caught.value)


def test_missing_kubeconfig_error_names_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="no cluster to talk to: set KUBECONFIG"):
        config.load()
    with pytest.raises(ConfigError, match="does not exist: check the path"):
        config.load(tmp_path / "missing")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "missing"))
    with pytest.raises(ConfigError, match=r"no file of KUBECONFIG=.* exists"):
        config.load()


def test_unreadable_kubeconfig_error_names_the_reason(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"cannot be read \(Is a directory\): check its path, owner and mode"
    ):
        config.load(tmp_path)
    (tmp_path / "kc").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="not text"):
        config.load(tmp_path / "kc")


async def test_missing_token_file_error_names_the_file(tmp_path: Path) -> None:
    loaded = config.load(write(tmp_path / "kc", kubeconfig({"tokenFile": "gone"})))
    with pytest.raises(ConfigError, match=r"token file .*/gone cannot be read \(No such file"):
        await loaded.credentials.current()
