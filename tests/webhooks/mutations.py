"""Admission reviews of real manifests, with faults in structure, values, JSON and bytes."""

from __future__ import annotations

import copy
import json
from functools import cache
from pathlib import Path as File
from random import Random
from typing import Any

import yaml

from grove.webhooks.registrations import Path
from tests.shared import ROOT, SHARED
from tests.webhooks.reviews import Body, review
from tests.webhooks.test_depth import ALPHA, BETA, RICH

FOLDERS = (
    *(ROOT / "docs" / "examples", ROOT / "tests" / "manifests", ROOT / "tests" / "dynamo" / "manifests"),
    *(SHARED / "testdata" / name for name in ("workloads", "dynamo/input", "dynamo-epp", "takeover")),
)
_SETS = (Path.DEFAULT_SET, Path.VALIDATE_SET)
_GRAPHS = (Path.DEFAULT_GRAPH, Path.VALIDATE_GRAPH)
PATHS = {
    "PodCliqueSet": ("podcliquesets", _SETS),
    "PodClique": ("podcliques", (Path.AUTHORIZE,)),
    "PodCliqueScalingGroup": ("podcliquescalinggroups", (Path.AUTHORIZE,)),
    "PodGang": ("podgangs", (Path.AUTHORIZE,)),
    "ClusterTopology": ("clustertopologies", (Path.VALIDATE_TOPOLOGY,)),
    "ClusterTopologyBinding": ("clustertopologybindings", (Path.VALIDATE_TOPOLOGY,)),
    "DynamoGraphDeployment": ("dynamographdeployments", _GRAPHS),
}
OPERATIONS = ("CREATE", "UPDATE", "UPDATE", "UPDATE", "DELETE", "CONNECT", "", "create")


def _child(kind: str, **spec: Any) -> Body:
    labels = {"app.kubernetes.io/managed-by": "grove-operator", "app.kubernetes.io/part-of": "app"}
    metadata = {"name": "app-0-worker", "namespace": "ns", "labels": labels}
    return {"apiVersion": "grove.io/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}


@cache
def manifests() -> tuple[Body, ...]:
    """Every object in the repository's manifests that a webhook reviews."""
    files = sorted(file for folder in FOLDERS if folder.is_dir() for file in folder.glob("*.yaml"))
    found = [body for file in files for body in _documents(file) if body.get("kind") in PATHS]
    children = (
        _child("PodClique", replicas=2, podSpec={"containers": [{"name": "c"}]}),
        _child("PodCliqueScalingGroup", replicas=2, cliqueNames=["worker"]),
        _child("PodGang", podGroups=[]),
    )
    return (*(body for body in found if len(json.dumps(body)) < 30_000), *children, RICH, BETA, ALPHA)


def _documents(file: File) -> list[Body]:
    return [body for body in yaml.load_all(file.read_text(), yaml.CSafeLoader) if isinstance(body, dict)]


def _nested(depth: int, opening: str, closing: str) -> str:
    return opening * depth + "1" + closing * depth


NUMBERS = (
    *("1e400", "-1e400", "1e-400", "9" * 5_000, "-" + "9" * 400, "1" + "0" * 4_299, "9" * 19, "9" * 25),
    *("2147483647", "2147483648", "-2147483649", "9223372036854775808", "18446744073709551616", "-1", "0"),
    *("0.5", "1.0", "-0.0", "1e3", "3000000", "1e308", "5e-324", "-0"),
)
TEXTS = (
    *(
        '""',
        '"\\u0000"',
        '"\\n\\r\\u2028"',
        '"\\u001b[31m"',
        '" "',
        '"-"',
        '"2147483647"',
        '"9999999h"',
        '"1e400"',
    ),
    *(
        '"' + "a" * 70_000 + '"',
        '"' + "\\u00e9" * 300 + '"',
        '"\\ud83d\\ude00"',
        '"%s%n{}"',
        '"../../x"',
        '"unknown"',
    ),
    *(
        '"' + "9" * 5_000 + 'h"',
        '"' + "9" * 5_000 + 'Gi"',
        '"1e999999999"',
        '"1e-999999999"',
        '"0x7f"',
        '"-1"',
    ),
)
SHAPES = (
    *("null", "true", "false", "{}", "[]", "[[]]", "[null]", '{"":null}', '{"a":{"a":null}}', "[{},{},{}]"),
    *(
        '{"name":"a","name":"b"}',
        '{"name":null,"name":1}',
        _nested(150, "[", "]"),
        _nested(150, '{"x":', "}"),
    ),
    *("[" + ",".join(["{}"] * 3_000) + "]", "[" + ",".join(['"a"'] * 9_000) + "]", '{"name":{"name":[]}}'),
)
NO_JSON = (
    *(
        "NaN",
        "Infinity",
        "-Infinity",
        "0x10",
        "01",
        "+1",
        ".5",
        "1_000",
        "1.",
        "[1,",
        '{"a"',
        "//",
        "tru",
        "\\",
        "]",
    ),
    *(
        '"a" "b"',
        '"\\ud800"',
        '"\\udc00\\ud800"',
        '"\\x41"',
        '"\n"',
        "",
        ",",
        "}",
        "'a'",
        _nested(100_000, "[", ""),
    ),
    *(_nested(1_500, "[", "]"), _nested(1_500, '{"a":', "}")),
)
KEYS = (
    "",
    "\0",
    "a" * 1_000,
    "__class__",
    "~1/",
    "name",
    "spec",
    "replicas",
    "é",
    "a\nb",
    "x.y[0]",
)


class Mutator:
    """Puts faults into a review. Values that are not JSON replace placeholders in the encoded text."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._raw: list[str] = []

    def review(self) -> tuple[Path, bytes]:
        """A review with up to six faults, and its URL path."""
        chance = self._chance
        body = chance.choice(manifests())
        plural, paths = PATHS[body["kind"]]
        group, _, version = body["apiVersion"].partition("/")
        resource = {"group": group, "version": version, "resource": plural}
        old = copy.deepcopy(chance.choice((*[body] * 12, None, chance.choice(manifests()))))
        document = review(chance.choice(OPERATIONS), copy.deepcopy(body), old, resource)
        for _ in range(chance.randint(1, 6)):
            self._spoil(chance.choice(self._targets(document)))
        text = json.dumps(document, separators=(",", ":"))
        for number, raw in enumerate(self._raw):
            text = text.replace(f'"@{number}@"', raw)
        path = chance.choice(paths) if chance.random() < 0.95 else chance.choice(list(Path))
        return path, self._spoil_bytes(text.encode("utf-8", "surrogatepass"))

    def _targets(self, document: Body) -> list[Any]:
        """The new and the old object, and sometimes the request or the review."""
        request = document.get("request")
        if not isinstance(request, dict) or self._chance.random() < 0.01:
            return [document]
        objects = [request[key] for key in ("object", "oldObject") if isinstance(request.get(key), dict)]
        return objects if objects and self._chance.random() < 0.96 else [request]

    def _spoil(self, document: Any) -> None:
        """One fault, at a random place in the document."""
        chance, container = self._chance, document
        while isinstance(container, dict | list) and container:
            keys = list(container) if isinstance(container, dict) else list(range(len(container)))
            key = chance.choice(keys)
            if not isinstance(container[key], dict | list) or not container[key] or chance.random() < 0.15:
                self._spoil_entry(container, key)
                return
            container = container[key]

    def _spoil_entry(self, container: Any, key: Any) -> None:
        chance = self._chance
        match chance.randrange(8):
            case 0:
                del container[key]
            case 1 if isinstance(container, dict):
                container[chance.choice(KEYS)] = container.pop(key)
            case 2 if isinstance(container, list):
                container.extend([container[key]] * chance.choice((1, 2, 500)))
            case 3:
                container[key] = chance.choice(
                    ([container[key]], {"a": container[key]}, [container[key]] * 3)
                )
            case 4 if isinstance(container, dict):
                container[chance.choice(KEYS)] = self._mark()
            case _:
                container[key] = self._mark()

    def _mark(self) -> str:
        fit = (NUMBERS, TEXTS, SHAPES)
        self._raw.append(
            self._chance.choice(NO_JSON if self._chance.random() < 0.015 else self._chance.choice(fit))
        )
        return f"@{len(self._raw) - 1}@"

    def _spoil_bytes(self, text: bytes) -> bytes:
        chance, at = self._chance, self._chance.randrange(len(text))
        match chance.randrange(100):
            case 0:
                return text[:at]
            case 1:
                return text[:at] + chance.randbytes(chance.randint(1, 4)) + text[at + 1 :]
            case 2:
                return text[:at] + b"\xff\xfe" + text[at:]
            case 3:
                return b"\xef\xbb\xbf" + text
            case 4:
                return text + text[at:]
        return text
