"""The manifests of a peer: which files are read, their order, and what is refused before anything starts."""

from __future__ import annotations

import json

import pytest
from bench.peer.errors import PeerError
from bench.peer.manifests import CRD, WEBHOOKS, Manifest, ordered, read

KINDS = ("podcliquesets.grove.io", "podcliques.grove.io", "podgangs.scheduler.grove.io")


def an_object(kind: str, name: str = "a", **fields: object) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, **fields}


def a_webhook(client: dict[str, object]) -> dict[str, object]:
    return an_object(WEBHOOKS[1], webhooks=[{"name": "v", "clientConfig": client}])


@pytest.fixture
def folder(tmp_path):
    """A directory with the CRDs that a peer needs."""
    for name in KINDS:
        (tmp_path / f"{name}.json").write_text(json.dumps(an_object(CRD, name)))
    return tmp_path


def test_objects_are_ordered_by_what_they_refer_to():
    kinds = (WEBHOOKS[1], "Deployment", "ConfigMap", "RoleBinding", CRD, "Role", "Namespace")
    found = ordered(Manifest("file", an_object(kind)) for kind in kinds)
    assert [each.kind for each in found.crds] == [CRD]
    assert [each.kind for each in found.others] == [
        "Namespace",
        "Role",
        "RoleBinding",
        "ConfigMap",
        "Deployment",
    ]
    assert [each.kind for each in found.webhooks] == [WEBHOOKS[1]]


def test_documents_and_lists_of_sub_folders_are_read(folder):
    (folder / "more").mkdir()
    documents = (
        an_object("ConfigMap", "b"),
        {"kind": "List", "items": [an_object("Namespace"), an_object("Secret")]},
    )
    (folder / "more" / "two.yml").write_text("\n---\n".join(map(json.dumps, documents)))
    (folder / "README.md").write_text("{ not YAML")
    found = read(folder)
    assert sorted(each.name for each in found.crds) == sorted(KINDS)
    assert [str(each) for each in found.others] == [
        "Namespace a in more/two.yml",
        "Secret a in more/two.yml",
        "ConfigMap b in more/two.yml",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: {\n", r"bad.yaml in PEER_DIR is not YAML at line 2 .*: render templates before"),
        ("a: b", r"bad.yaml in PEER_DIR has a document without apiVersion, kind or metadata.name: add them"),
        (json.dumps(a_webhook({"service": {"name": "x"}})), r"webhook v of .* in bad.yaml calls a Service"),
    ],
)
def test_bad_file_is_refused_by_name(folder, text, message):
    (folder / "bad.yaml").write_text(text)
    with pytest.raises(PeerError, match=message):
        read(folder)


def test_webhook_with_a_url_is_accepted(folder):
    (folder / "webhook.json").write_text(json.dumps(a_webhook({"url": "https://127.0.0.1:9443/validate"})))
    assert len(read(folder).webhooks) == 1


def test_missing_crd_is_named(folder):
    (folder / "podcliques.grove.io.json").unlink()
    with pytest.raises(PeerError, match=r"has no CRD of podcliques.grove.io: add them"):
        read(folder)


def test_missing_directory_is_named(tmp_path):
    with pytest.raises(PeerError, match=r"PEER_DIR .*nowhere is not a directory"):
        read(tmp_path / "nowhere")
