"""Software bills of materials: what the program needs at run time, and what an image has besides."""

from __future__ import annotations

import re
import tomllib

import pytest

from tests.shared import ROOT
from tools import sbom

ENVIRONMENT = {
    "metadata": {"component": {"bom-ref": "root", "name": "grove", "version": "1"}},
    "components": [
        {"bom-ref": "A==1", "name": "A_b"},
        {"bom-ref": "c==1", "name": "c"},
        {"bom-ref": "tool==1", "name": "tool"},
    ],
    "dependencies": [{"ref": "root", "dependsOn": ["A==1"]}, {"ref": "A==1", "dependsOn": ["tool==1"]}],
}
NEEDED = {"grove": frozenset({"a-b"}), "a-b": frozenset({"c"}), "c": frozenset[str]()}
FROM = "FROM python:3.11-slim{} AS build\nFROM python:3.11-slim{} AS program\n"


def test_bill_of_package_has_no_tools():
    bill = sbom.of_package(ENVIRONMENT, NEEDED)
    assert [each["bom-ref"] for each in bill["components"]] == ["A==1", "c==1"]
    assert bill["dependencies"] == [
        {"ref": "A==1", "dependsOn": ["c==1"]},
        {"ref": "c==1", "dependsOn": []},
        {"ref": "root", "dependsOn": ["A==1"]},
    ]


@pytest.mark.parametrize("digest", ["", "a1" * 32])
def test_bill_of_image_names_its_base(digest):
    package = sbom.of_package(ENVIRONMENT, NEEDED)
    bill = sbom.of_image("grove-initc", package, FROM.format(*[f"@sha256:{digest}" if digest else ""] * 2))
    base, program, *rest = bill["components"]
    assert (base["name"], base["version"], "hashes" in base) == ("python", "3.11-slim", bool(digest))
    assert (program["name"], rest) == ("grove", package["components"])
    assert bill["metadata"]["component"]["name"] == "grove-initc"
    refs = {bill["metadata"]["component"]["bom-ref"], *(each["bom-ref"] for each in bill["components"])}
    assert {each["ref"] for each in bill["dependencies"]} == refs
    assert bill["serialNumber"] != package["serialNumber"]


def test_image_without_its_stage_is_an_error():
    with pytest.raises(ValueError, match="AS program"):
        sbom.of_image("a", ENVIRONMENT, "FROM scratch\n")
    assert sbom.of_image("a", ENVIRONMENT, (ROOT / "Containerfile").read_text())["components"][0]


def test_packages_of_program_are_pinned():
    pinned = re.findall(r"^([a-z0-9-]+)==", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    name = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["name"]
    needed = set(sbom.required_packages(name)) - {name}
    assert {"aiohttp", "msgspec", "yarl"} <= needed <= set(pinned)
    assert not needed & {"pytest", "mypy", "ruff"}, "tools are not needed at run time"
