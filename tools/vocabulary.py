"""python -m tools.vocabulary: names and prose use the words of docs/glossary.md, and no folder is overfull.

It checks file names, every name that Python code defines, docstrings, comments and other strings of the
product, and the documents. Each finding says what to use instead.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
MOST_MODULES = 14
"""Of one folder; about 12 is the aim."""
LONGEST_TEST_NAME = 60
DELIVERED = frozenset({"src/grove/dynamo/render/leader_wait_script.py"})
"""Text that runs in users' pods: rewording it would change their ConfigMaps."""
RETIRED_NAMES = {
    "told": "reported, given", "teller": "scheduler objects", "anew": "again", "fares": "status",
    "mend": "repair", "mender": "repair", "mended": "repaired", "heal": "gang termination",
    "healing": "gang termination", "blame": "errors", "grievances": "events", "complaint": "user error",
    "plight": "reason", "plights": "reasons", "stray": "relabel", "strays": "relabel",
    "ghosts": "force delete", "estate": "owned objects", "ledger": "membership", "enrol": "membership",
    "enrolled": "clique state", "allegiance": "scheduler selection", "neighbourhood": "fabric lookup",
    "environs": "topology usage", "surroundings": "context", "counterparts": "topology sync",
    "stirrings": "watches", "wakes": "watches", "endings": "terminating namespace",
    "retirements": "scale in", "leisure": "delay", "custody": "secret", "agenda": "dependency graph",
    "inquiry": "unknown writes", "timetable": "delay queue", "arrivals": "crd watch",
    "sighting": "observed", "households": "pods by clique", "births": "creates", "departures": "deletes",
    "whoever": "name it", "nobody": "name it", "somebody": "name it",
}  # fmt: skip
RETIRED_PROSE = {
    r"told": "reported, given, written", r"tells?": "reports, says", r"telling": "reporting",
    r"anew": "again", r"fares?": "is, status", r"mend(s|ed|ing)?": "repair",
    r"heal(s|ed|ing)?": "recover, restart", r"plights?": "reason", r"strays?": "orphan, relabel",
    r"ghosts?": "force delete", r"in vain": "without effect", r"come no further": "does not progress",
    r"whoever": "name the subject", r"nobody": "name the subject", r"somebody": "name the subject",
}  # fmt: skip
_PROSE = re.compile(r"\b(" + "|".join(RETIRED_PROSE) + r")\b", re.IGNORECASE)
_PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


class Finding(NamedTuple):
    """A word that is not used any more, or a folder with too many modules."""

    place: str
    problem: str

    def __str__(self) -> str:
        return f"{self.place}: {self.problem}"


def overfull(folder: Path) -> Iterator[Finding]:
    """Folders below this one that hold more modules than a newcomer can overlook."""
    for place in (folder, *(path for path in sorted(folder.rglob("*")) if path.is_dir())):
        modules = [path for path in place.glob("*.py") if path.name != "__init__.py"]
        if len(modules) > MOST_MODULES:
            yield Finding(str(place), f"{len(modules)} modules, at most {MOST_MODULES}: make sub-packages")


def retired_names(source: str, place: str) -> Iterator[Finding]:
    """Names that the code defines with a retired word in them."""
    for node in ast.walk(ast.parse(source)):
        for name in _defined(node):
            for part in _PARTS.findall(name):
                if instead := RETIRED_NAMES.get(part.lower()):
                    line = getattr(node, "lineno", 0)
                    yield Finding(f"{place}:{line}", f"name {name}: use words for {instead!r}")


def long_test_names(source: str, place: str) -> Iterator[Finding]:
    """Tests whose names say more than subject, condition and result."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if node.name.startswith("test_") and len(node.name) > LONGEST_TEST_NAME:
            problem = f"{node.name} has {len(node.name)} characters, at most {LONGEST_TEST_NAME}"
            yield Finding(f"{place}:{node.lineno}", problem)


def _defined(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield node.name
        case ast.arg():
            yield node.arg
        case ast.Name(ctx=ast.Store()):
            yield node.id
        case ast.Attribute(ctx=ast.Store()):
            yield node.attr


def retired_prose(source: str, place: str) -> Iterator[Finding]:
    """Docstrings, comments and other strings with a retired word in them."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in (tokenize.STRING, tokenize.COMMENT):
            yield from _in_text(token.string, place, token.start[0])


def retired_in_document(text: str, place: str) -> Iterator[Finding]:
    """Lines of a document with a retired word in them."""
    yield from _in_text(text, place, 1)


def _in_text(text: str, place: str, first: int) -> Iterator[Finding]:
    for found in _PROSE.finditer(text):
        line = first + text.count("\n", 0, found.start())
        instead = next(
            new for old, new in RETIRED_PROSE.items() if re.fullmatch(old, found[0], re.IGNORECASE)
        )
        yield Finding(f"{place}:{line}", f"word {found[0]!r}: say {instead}")


def findings() -> Iterator[Finding]:
    """Everything in this checkout that does not keep to the glossary."""
    for folder in ("src/grove", "tests", "bench", "tools"):
        yield from overfull(ROOT / folder)
    for folder in ("src/grove", "tests", "bench"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            place, source = str(file.relative_to(ROOT)), file.read_text()
            for part in file.stem.split("_"):
                if instead := RETIRED_NAMES.get(part):
                    yield Finding(place, f"file name: use words for {instead!r}")
            yield from retired_names(source, place)
            if folder == "src/grove" and place not in DELIVERED:
                yield from retired_prose(source, place)
            elif folder == "tests":
                yield from long_test_names(source, place)
    documents = (*(ROOT / "docs").rglob("*.md"), *(ROOT / "charts").rglob("*.yaml"), ROOT / "README.md")
    for file in sorted((*documents, ROOT / "CONTRIBUTING.md")):
        yield from retired_in_document(file.read_text(), str(file.relative_to(ROOT)))


def main() -> int:
    found = list(findings())
    for finding in found:
        sys.stdout.write(f"{finding}\n")
    if found:
        sys.stdout.write(f"{len(found)} findings: docs/glossary.md has the words\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
