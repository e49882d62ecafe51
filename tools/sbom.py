"""Software bills of materials (CycloneDX, JSON) of the package and of its images, for `make sbom`.

They need no network: they describe what is installed in the virtual environment, which has the versions of
requirements.lock, as the images have. Of the base image of the images only the name is known here, and the
digest if the Containerfile has one; its registry has the bill of its Debian packages.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import uuid
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

Body = dict[str, Any]

ROOT = Path(__file__).resolve().parent.parent
FOLDER = Path("dist/sbom")
IMAGES = ("grove-operator", "grove-initc")
_BASE = re.compile(r"^FROM ([^\s:@]+):([^\s@]+)(?:@sha256:([0-9a-f]{64}))? AS program$", re.MULTILINE)
_SERIALS = uuid.UUID("5b0ff1e2-6f0c-4d2e-9a39-0d0f6b1f6f0e")
"""The namespace of serial numbers, which depend on nothing but the content."""


def of_package(environment: Body, needed: Mapping[str, frozenset[str]]) -> Body:
    """The bill of an environment, reduced to what the program needs at run time. `needed`: by name, the
    packages that a package requires, where cyclonedx-py also counts those of extras that are not used."""
    root = environment["metadata"]["component"]
    root_name = canonicalize_name(root["name"])
    found = {canonicalize_name(each["name"]): each for each in environment["components"]}
    components = {name: each for name, each in found.items() if name in needed and name != root_name}
    refs = {name: each["bom-ref"] for name, each in components.items()} | {root_name: root["bom-ref"]}
    dependencies = [
        {"ref": refs[name], "dependsOn": sorted(refs[each] for each in required)}
        for name, required in sorted(needed.items())
    ]
    return _with_serial(
        {**environment, "components": list(components.values()), "dependencies": dependencies}
    )


def required_packages(root: str) -> dict[str, frozenset[str]]:
    """The installed packages that a package needs at run time, directly or not, with what each of them
    requires."""
    found: dict[str, set[str]] = {}
    queue, seen = [(canonicalize_name(root), "")], set[tuple[str, str]]()
    while queue:
        if (asked := queue.pop()) in seen:
            continue
        seen.add(asked)
        name, extra = asked
        required = found.setdefault(name, set())
        for line in metadata.requires(name) or ():
            requirement = Requirement(line)
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                required.add(canonicalize_name(requirement.name))
                queue += [(canonicalize_name(requirement.name), each) for each in ("", *requirement.extras)]
    return {name: frozenset(required) for name, required in found.items()}


def of_image(name: str, package: Body, containerfile: str) -> Body:
    """The bill of an image: the package, on the base image that the Containerfile names."""
    found = _BASE.search(containerfile)
    if found is None:
        raise ValueError("Containerfile: no line `FROM <image>:<tag> AS program`")
    base_name, tag, digest = found.groups()
    hashes = {"hashes": [{"alg": "SHA-256", "content": digest}]} if digest else {}
    base = {"type": "container", "bom-ref": "base-image", "name": base_name, "version": tag, **hashes}
    program = package["metadata"]["component"]
    image = {"type": "container", "bom-ref": "image", "name": name, "version": program["version"]}
    contains = {"ref": "image", "dependsOn": [base["bom-ref"], program["bom-ref"]]}
    return _with_serial(
        {
            **package,
            "metadata": {**package["metadata"], "component": image},
            "components": [base, program, *package["components"]],
            "dependencies": [contains, {"ref": base["bom-ref"]}, *package["dependencies"]],
        }
    )


def _with_serial(bill: Body) -> Body:
    content = {key: value for key, value in bill.items() if key != "serialNumber"}
    return {**content, "serialNumber": uuid.uuid5(_SERIALS, json.dumps(content, sort_keys=True)).urn}


def read_environment() -> Body:
    """The bill of everything that is installed, as cyclonedx-py reports it."""
    command = [sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible"]
    given = ["--pyproject", str(ROOT / "pyproject.toml"), sys.executable]
    found = subprocess.run([*command, *given], stdout=subprocess.PIPE, text=True, check=True)
    bill: Body = json.loads(found.stdout)
    return bill


def main() -> None:
    environment = read_environment()
    package = of_package(environment, required_packages(environment["metadata"]["component"]["name"]))
    containerfile = (ROOT / "Containerfile").read_text()
    bills = {"grove": package} | {name: of_image(name, package, containerfile) for name in IMAGES}
    (ROOT / FOLDER).mkdir(parents=True, exist_ok=True)
    for name, bill in bills.items():
        path = FOLDER / f"{name}.cdx.json"
        (ROOT / path).write_text(json.dumps(bill, indent=2) + "\n", encoding="utf-8")
        sys.stdout.write(f"{path} {len(bill['components'])} components\n")


if __name__ == "__main__":
    main()
