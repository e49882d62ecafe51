"""Digests of base images, as a registry reports them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from tools.image_digests import Unresolved, address, base_images, pinned, resolve

from tests.shared import ROOT
from tools import image_digests

DIGEST = f"sha256:{'0a' * 32}"
CONTAINERFILE = (ROOT / "Containerfile").read_text()


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ("python:3.11-slim", ("registry-1.docker.io", "library/python", "3.11-slim")),
        ("team/app:1", ("registry-1.docker.io", "team/app", "1")),
        ("docker.io/team/app:1", ("registry-1.docker.io", "team/app", "1")),
        ("registry.example.com/team/app:1", ("registry.example.com", "team/app", "1")),
        ("localhost:5000/app:1", ("localhost:5000", "app", "1")),
    ],
)
def test_image_has_registry_repository_and_tag(image, expected):
    assert address(image) == expected


def test_every_stage_from_outside_is_pinned_again_and_again():
    (image,) = base_images(CONTAINERFILE)
    once = pinned(CONTAINERFILE, {image: DIGEST})
    assert once.count(f"FROM {image}@{DIGEST} AS ") == 2
    assert "FROM program AS operator" in once
    assert base_images(once) == [image]
    other = DIGEST.replace("0a", "0b")
    assert pinned(once, {image: other}) == once.replace(DIGEST, other)


class Registry(BaseHTTPRequestHandler):
    """Answers as registries do: first it asks for a token."""

    def do_HEAD(self) -> None:
        if self.headers["Authorization"] != "Bearer secret":
            realm = f"http://{self.headers['Host']}/token"
            self.send_response(401)
            self.send_header("WWW-Authenticate", f'Bearer realm="{realm}",service="here"')
        elif self.path == "/v2/app/manifests/1":
            self.send_response(200)
            self.send_header("Docker-Content-Digest", DIGEST)
        else:
            self.send_response(404)
        self.end_headers()

    def do_GET(self) -> None:
        right = self.path == "/token?service=here&scope=repository%3Aapp%3Apull"
        self.send_response(200 if right else 400)
        self.end_headers()
        self.wfile.write(b'{"token": "secret"}')

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def registry() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Registry) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


def test_registry_is_asked_with_a_token(registry):
    assert resolve(f"{registry}/app:1", "http") == DIGEST


def test_missing_digest_is_one_line(registry):
    for image, why in ((f"{registry}/app:2", "404|Not Found"), ("127.0.0.1:9/app:1", "refused")):
        with pytest.raises(Unresolved, match=why) as problem:
            resolve(image, "http")
        assert str(problem.value).startswith(image)
        assert "\n" not in str(problem.value)


def test_unreachable_registry_changes_nothing(monkeypatch, tmp_path, capsys):
    file = tmp_path / "Containerfile"
    file.write_text("FROM 127.0.0.1:9/app:1 AS build\n")
    monkeypatch.setattr(image_digests, "CONTAINERFILE", file)
    assert image_digests.main() == 1
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert file.read_text() == "FROM 127.0.0.1:9/app:1 AS build\n"
