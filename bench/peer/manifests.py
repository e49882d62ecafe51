"""The manifests of a peer: the YAML and JSON files of a directory, in the order in which they are applied."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from bench.core.setup import CLIQUES, GANGS, SETS
from bench.peer.errors import PeerError
from grove.kube import yaml_parser
from grove.kube.yaml_parser import YamlError

SUFFIXES = {".yaml", ".yml", ".json"}
CRD = "CustomResourceDefinition"
WEBHOOKS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
_FIRST = (
    "Namespace", "ServiceAccount", "ClusterRole", "Role", "ClusterRoleBinding", "RoleBinding", "Secret",
    "ConfigMap",
)  # fmt: skip
"""What others refer to, in this order; every other kind comes after them."""
Body = dict[str, Any]


class Manifest(NamedTuple):
    """An object, and the file that it is in."""

    file: str
    body: Body

    @property
    def kind(self) -> str:
        return str(self.body["kind"])

    @property
    def name(self) -> str:
        return str(self.body["metadata"]["name"])

    def __str__(self) -> str:
        return f"{self.kind} {self.name} in {self.file}"


class Manifests(NamedTuple):
    """The objects of a directory by when they are applied, each part in its order."""

    crds: list[Manifest]
    others: list[Manifest]
    webhooks: list[Manifest]


def read(folder: Path) -> Manifests:
    """Read and check all files below the directory. Raises PeerError."""
    if not folder.is_dir():
        raise PeerError(f"PEER_DIR {folder} is not a directory: give the one with the operator's manifests")
    files = sorted(path for path in folder.rglob("*") if path.suffix in SUFFIXES and path.is_file())
    found = [each for path in files for each in _objects(path, str(path.relative_to(folder)))]
    for each in found:
        _check_reachable(each)
    parts = ordered(found)
    names = {each.name for each in parts.crds}
    if missing := [each.label for each in (SETS, CLIQUES, GANGS) if each.label not in names]:
        raise PeerError(f"PEER_DIR {folder} has no CRD of {', '.join(missing)}: add them")
    return parts


def ordered(found: Iterable[Manifest]) -> Manifests:
    """CRDs, then what others refer to, then the rest. Webhooks are apart: once they exist, the API server
    refuses objects until the operator serves them."""
    rank = {kind: number for number, kind in enumerate(_FIRST)}
    in_order = sorted(found, key=lambda each: rank.get(each.kind, len(rank)))
    late = (CRD, *WEBHOOKS)
    return Manifests(
        [each for each in in_order if each.kind == CRD],
        [each for each in in_order if each.kind not in late],
        [each for each in in_order if each.kind in WEBHOOKS],
    )


def _objects(path: Path, file: str) -> Iterator[Manifest]:
    try:
        documents = yaml_parser.parse_all(path.read_text(encoding="utf-8"))
    except YamlError as error:
        raise PeerError(f"{file} in PEER_DIR is {error}: render templates before, and correct it") from None
    except (OSError, UnicodeDecodeError) as error:
        raise PeerError(f"{file} in PEER_DIR cannot be read ({error}): correct or remove it") from None
    for document in documents:
        yield from _flattened(document, file)


def _flattened(document: Any, file: str) -> Iterator[Manifest]:
    """The object of a document, or the objects of a list, as `kubectl get -o yaml` prints one."""
    match document:
        case {"kind": "List", "items": [*items]}:
            for item in items:
                yield from _flattened(item, file)
        case {"apiVersion": str(), "kind": str(), "metadata": {"name": str()}}:
            yield Manifest(file, document)
        case _:
            problem = "a document without apiVersion, kind or metadata.name"
            raise PeerError(f"{file} in PEER_DIR has {problem}: add them, or move the file elsewhere")


def _check_reachable(manifest: Manifest) -> None:
    """Refuse webhooks that call a Service: no pod runs here, the operator is a process on this machine."""
    if manifest.kind not in WEBHOOKS:
        return
    for webhook in manifest.body.get("webhooks") or ():
        if "url" not in (webhook.get("clientConfig") or {}):
            where = f"webhook {webhook.get('name', '')} of {manifest}"
            remedy = "give it clientConfig.url, such as https://127.0.0.1:9443/path"
            raise PeerError(f"{where} calls a Service, and the local control plane has no Services: {remedy}")
