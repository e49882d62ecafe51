"""The marks `proves` in the sources of the tests, read without importing them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tools.versions.records import ROOT, Mark

_MARK = "pytest.mark.proves"


def all_marks(root: Path = ROOT) -> set[Mark]:
    """What the tests of the project prove."""
    return {
        mark
        for file in sorted((root / "tests").rglob("test_*.py"))
        for mark in marks_of(file.read_text(), file.relative_to(root).as_posix())
    }


def marks_of(source: str, path: str) -> Iterator[Mark]:
    """The marks of one file: decorators of tests, and marks of parameters in decorators."""
    if _MARK not in source:
        return
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for decorator in node.decorator_list:
                for feature, scheduler in _calls(decorator, f"{path}:{node.lineno}"):
                    yield Mark(f"{path}::{node.name}", feature, scheduler)


def _calls(decorator: ast.expr, place: str) -> Iterator[tuple[str, str]]:
    for node in ast.walk(decorator):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == _MARK:
            values = [*node.args, *(keyword.value for keyword in node.keywords)]
            match [value.value if isinstance(value, ast.Constant) else None for value in values]:
                case [str(feature), str(scheduler)]:
                    yield feature, scheduler
                case _:
                    raise ValueError(
                        f'{place}: write {_MARK}("<feature>", scheduler="<scheduler>") literally'
                    )
