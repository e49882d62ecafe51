"""Official releases, from a local server with the layout of the official ones."""

from __future__ import annotations

import hashlib
import http.server
import io
import json
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from rich.console import Console

from grove.local.build.releases import ReleaseUnavailable, asset, download
from grove.local.build.versions import ETCD, KUBERNETES, KWOK, Program, default_minor, programs
from grove.local.errors import LocalError
from grove.local.progress import ProgressReporter

MINOR = default_minor({})
BY_NAME = {part.name: part for part in programs(MINOR)}
TASK = ProgressReporter(Console(stderr=True), quiet=True)


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments: object) -> None:
        """No request log in the output of tests."""


@pytest.fixture
def mirror(tmp_path: Path) -> Iterator[tuple[Path, dict[str, str]]]:
    """A served folder, and the environment that names it as the mirror."""
    root = tmp_path / "mirror"
    root.mkdir()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(root)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield root, {"GROVE_MIRROR": f"http://127.0.0.1:{server.server_port}"}
    server.shutdown()
    thread.join()
    server.server_close()


def publish(root: Path, path: str, content: bytes) -> str:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return hashlib.sha256(content).hexdigest()


def publish_kubernetes(root: Path, name: str, content: bytes, checksum: str | None = None) -> None:
    path = f"dl.k8s.io/v{KUBERNETES[MINOR]}/bin/linux/amd64/{name}"
    found = publish(root, path, content)
    publish(root, f"{path}.sha256", (checksum or found).encode())


def fetch(part: Program, environ: dict[str, str], destination: Path, system: str = "linux") -> bytes:
    with TASK.task("test") as task:
        download(part, asset(part, system, "amd64", environ), destination, task)
    return destination.read_bytes()


def test_kubernetes_binary_is_verified_by_sha256_file(mirror, tmp_path) -> None:
    root, environ = mirror
    publish_kubernetes(root, "kube-scheduler", b"a scheduler")
    destination = tmp_path / "kube-scheduler"
    assert fetch(BY_NAME["kube-scheduler"], environ, destination) == b"a scheduler"
    assert destination.stat().st_mode & 0o111, "it can be run"


def test_etcd_is_extracted_from_tar(mirror, tmp_path) -> None:
    root, environ = mirror
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        for name, content in (("etcdctl", b"not this"), ("etcd", b"a store")):
            entry = tarfile.TarInfo(f"etcd-v{ETCD}-linux-amd64/{name}")
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    folder = f"github.com/etcd-io/etcd/releases/download/v{ETCD}"
    digest = publish(root, f"{folder}/etcd-v{ETCD}-linux-amd64.tar.gz", archive.getvalue())
    others = f"{'0' * 64}  etcd-v{ETCD}-linux-arm64.tar.gz\n"
    publish(root, f"{folder}/SHA256SUMS", f"{others}{digest}  etcd-v{ETCD}-linux-amd64.tar.gz\n".encode())
    assert fetch(BY_NAME["etcd"], environ, tmp_path / "etcd") == b"a store"


def test_etcd_is_extracted_from_zip_on_darwin(mirror, tmp_path) -> None:
    root, environ = mirror
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as folder:
        folder.writestr(f"etcd-v{ETCD}-darwin-amd64/etcd", b"a store")
    base = f"github.com/etcd-io/etcd/releases/download/v{ETCD}"
    digest = publish(root, f"{base}/etcd-v{ETCD}-darwin-amd64.zip", archive.getvalue())
    publish(root, f"{base}/SHA256SUMS", f"{digest} *etcd-v{ETCD}-darwin-amd64.zip\n".encode())
    assert fetch(BY_NAME["etcd"], environ, tmp_path / "etcd", system="darwin") == b"a store"


def test_kwok_is_verified_by_github_digest(mirror, tmp_path) -> None:
    root, environ = mirror
    digest = publish(
        root, f"github.com/kubernetes-sigs/kwok/releases/download/v{KWOK}/kwok-linux-amd64", b"a kwok"
    )
    described = {
        "assets": [
            {"name": "kwokctl-linux-amd64"},
            {"name": "kwok-linux-amd64", "digest": f"sha256:{digest}"},
        ]
    }
    publish(
        root,
        f"api.github.com/repos/kubernetes-sigs/kwok/releases/tags/v{KWOK}",
        json.dumps(described).encode(),
    )
    assert fetch(BY_NAME["kwok"], environ, tmp_path / "kwok") == b"a kwok"


def test_wrong_checksum_is_rejected_and_not_cached(mirror, tmp_path) -> None:
    root, environ = mirror
    publish_kubernetes(root, "kubectl", b"tampered with", checksum="0" * 64)
    folder = tmp_path / "bin"
    folder.mkdir()
    with pytest.raises(LocalError, match=r"checksum .* rejected"):
        fetch(BY_NAME["kubectl"], environ, folder / "kubectl")
    assert list(folder.iterdir()) == []


def test_file_without_checksum_is_unavailable(mirror, tmp_path) -> None:
    root, environ = mirror
    publish(root, f"api.github.com/repos/kubernetes-sigs/kwok/releases/tags/v{KWOK}", b'{"assets": []}')
    with pytest.raises(ReleaseUnavailable, match="no checksum"):
        fetch(BY_NAME["kwok"], environ, tmp_path / "kwok")


def test_unreachable_server_is_unavailable(tmp_path) -> None:
    with pytest.raises(ReleaseUnavailable):
        fetch(BY_NAME["kubectl"], {"GROVE_MIRROR": "http://127.0.0.1:9"}, tmp_path / "kubectl")
