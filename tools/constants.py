"""python -m tools.constants: numbers that decide when or how much are on one page, `grove.timing`.

It finds constants of modules that are numbers. Each finding is either a delay, a limit or a threshold, which
belongs on the page with its reason, or a part of a format or protocol, which is listed below.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src" / "grove"
ROOMS = ("kube", "operator", "plan", "webhooks", "initc", "fabrics", "schedulers", "topology")
FORMATS = {
    "kube/auth/certificate_expiry.py": {"_VERSION", "_UTC_TIME", "_VALIDITY"},
    "kube/client/http_reply.py": {"_SWITCHING"},
    "kube/client/undecodable.py": {"_KEPT_LEVELS", "_ITEM"},
    "kube/events.py": {"_MAX_NOTE_BYTES", "_MAX_NAME_LENGTH"},
    "operator/observers/cluster/device_use.py": {"NOT_PREEMPTED"},
    "operator/observers/ssh_keys.py": {"_BITS"},
    "plan/desired/initcontainer.py": {"_READABLE"},
    "plan/desired/template_hash.py": {"_LENGTH"},
    "schedulers/kai_topology.py": {"_MAX_NAME"},
    "schedulers/kube.py": {"_WEIGHT"},
    "schedulers/kube_podgroups.py": {"_SUFFIX"},
    "webhooks/conversion/unread_objects.py": {"_IN_REQUEST"},
}
"""Constants by module that are parts of formats and protocols: hash lengths, codes, limits of the API."""


def numbers(source: str) -> Iterator[tuple[int, str]]:
    """Line and name of each constant of a module that is a number."""
    for node in ast.parse(source).body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name.isupper() and _number(value):
                yield node.lineno, name
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=value) if _number(value):
                yield from ((node.lineno, name.id) for name in names if isinstance(name, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name), value=value) if name.isupper() and _number(value):
                yield node.lineno, name


def _number(value: ast.expr | None) -> bool:
    """Whether an expression is a number, or arithmetic with numbers only."""
    match value:
        case ast.Constant(value=number):
            return isinstance(number, int | float) and not isinstance(number, bool)
        case ast.UnaryOp(operand=operand):
            return _number(operand)
        case ast.BinOp(left=left, right=right):
            return _number(left) and _number(right)
        case ast.Tuple(elts=elements):
            return bool(elements) and all(map(_number, elements))
    return False


def findings(source: Path = SOURCE) -> Iterator[str]:
    """Numbers of this checkout that are not on the page."""
    for room in ROOMS:
        for file in sorted((source / room).rglob("*.py")):
            place = str(file.relative_to(source))
            for line, name in numbers(file.read_text()):
                if name not in FORMATS.get(place, ()):
                    yield f"src/grove/{place}:{line}: {name}: move it to grove.timing, with its reason"


def main() -> int:
    found = list(findings())
    for finding in found:
        sys.stdout.write(f"{finding}\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
