"""Generates docs/cli.md from the program: one section per command, with its arguments and options."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from enum import IntEnum
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from cyclopts import App
from docstring_parser import Docstring
from docstring_parser import parse as parse_docstring

from grove.cli import exit_codes
from grove.cli.exit_codes import ExitCode
from grove.cli.main import COMMANDS, app

HEAD = """\
# Command line

Generated from the program by `make fix`; do not edit.

## Installation

    uv tool install grove-operator     # or: pipx install grove-operator

installs `grove` and the plug-in `kubectl-grove`, so that `kubectl grove get` is `grove get`. Both need
Python 3.11 or later. The distribution is named `grove-operator`, because `grove` on PyPI is another project.
`make krew URL=...` builds archives for [krew](https://krew.sigs.k8s.io) and their manifest.

## Conventions

Options are those of kubectl:

| option | |
|---|---|
| `-n`, `--namespace`; `-A`, `--all-namespaces` | one namespace, by default that of the context, or all |
| `-l`, `--selector` | only PodCliqueSets with these labels |
| `--context`, `--kubeconfig` | the cluster; default: `KUBECONFIG`, the service account, `~/.kube/config` |
| `-o table` | text for people; on a terminal it has colours and fits the width |
| `-o wide` | the same with all columns, and nothing is left out or cut |
| `-o json`, `-o yaml` | for programs |
| `-o name` | `kind.group/name`, one on each line, for example for `xargs kubectl get` |
| `-w`, `--watch` | the state, then changes as watches of the API server report them, until interrupted |

On a terminal, `--watch` redraws; elsewhere there is a line or a document for each change. There are no
colours outside of a terminal, or if the variable `NO_COLOR` is set. Lists are read in pages. What a command
answers goes to standard output, messages to standard error.

## Completion

    source <(grove completion bash)    # in ~/.bashrc
    source <(grove completion zsh)     # in ~/.zshrc, after compinit
    grove completion fish | source     # in ~/.config/fish/config.fish

It completes commands, options, their values, and names of PodCliqueSets, namespaces, topologies and contexts;
after a kind and a slash, as in `grove status gang/`, those of that kind.
For `kubectl grove`, kubectl asks the program `kubectl_complete-grove`, which is installed with `grove`; after
an installation with krew, link it: `ln -s kubectl-grove ~/.krew/bin/kubectl_complete-grove`.

"""


def page() -> str:
    """The whole page."""
    sections = [_section(app, name) for name in sorted(_names(app))]
    return "\n".join([HEAD + _exit_codes(), "## Commands\n", _list(), *sections])


def _exit_codes() -> str:
    """The table of exit codes, with the docstrings of their enumeration."""
    rows = [f"| {code.value} | {text} |" for code, text in _documented(ExitCode)]
    about = "The same in all commands; [`grove operator`](operator.md) has those of upstream's operator:"
    return f"## Exit codes\n\n{about}\n\n| code | |\n|---|---|\n" + "\n".join(rows) + "\n"


def _documented(codes: type[IntEnum]) -> Iterator[tuple[IntEnum, str]]:
    (body,) = (
        each.body
        for each in ast.parse(inspect.getsource(exit_codes)).body
        if isinstance(each, ast.ClassDef) and each.name == codes.__name__
    )
    for value, text in pairwise(body):
        match value, text:
            case ast.Assign(targets=[ast.Name(id=name)]), ast.Expr(value=ast.Constant(value=str(about))):
                yield codes[name], " ".join(about.split())


def _names(of: App) -> list[str]:
    return [name for name in of if not name.startswith("-")]


def _list() -> str:
    summaries = {
        name: COMMANDS[name][1] if name in COMMANDS else _about(app[name])[0] for name in sorted(_names(app))
    }
    rows = [f"| [`grove {name}`](#grove-{name}) | {_cell(text)} |" for name, text in summaries.items()]
    return "| command | |\n|---|---|\n" + "\n".join(rows) + "\n"


def _section(parent: App, name: str, path: str = "grove") -> str:
    """A command, and those below it."""
    command, title = parent[name], f"{path} {name}"
    if command.default_command is None:
        parts = [f"### {title}\n\n{COMMANDS[name][1]}\n"]
        return "\n".join((*parts, *(_section(command, each, title) for each in sorted(_names(command)))))
    text, described = _about(command)
    arguments = list(command.assemble_argument_collection())
    positional = [each for each in arguments if not _is_option(each)]
    options = ["[OPTIONS]"] if len(positional) < len(arguments) else []
    usage = " ".join([title, *(_placeholder(each) for each in positional), *options])
    rows = [_row(each, described) for each in (*positional, *filter(_is_option, arguments))]
    table = "| argument or option | default | |\n|---|---|---|\n" + "\n".join(rows) + "\n" if rows else ""
    return f"### {title}\n\n    {usage}\n\n{text}\n\n{table}"


def _about(command: App) -> tuple[str, Docstring]:
    """The description of a command, and its docstring with the parameters."""
    doc = inspect.getdoc(command.default_command) or ""
    text = doc.partition("\nParameters\n---")[0].strip()
    return "\n\n".join(" ".join(each.split()) for each in text.split("\n\n")), parse_docstring(doc)


def _is_option(argument: Any) -> bool:
    return bool(argument.field_info.kind == inspect.Parameter.KEYWORD_ONLY)


def _placeholder(argument: Any) -> str:
    name = argument.names[0].removeprefix("--").upper()
    if argument.field_info.kind == inspect.Parameter.VAR_POSITIONAL:
        return f"[{name}...]"
    return name if argument.required else f"[{name}]"


def _row(argument: Any, described: Docstring) -> str:
    names = [_placeholder(argument)] if not _is_option(argument) else _option_names(argument)
    known = {each.arg_name: each.description or "" for each in described.params}
    text = argument.parameter.help or known.get(argument.field_info.name, "")
    choices = [str(each) for kind in _kinds(argument.hint) for each in get_args(kind)]
    if choices and not all(each in text for each in choices):
        text = f"{text} Choices: {', '.join(choices)}.".strip()
    shown = ", ".join(f"`{name}`" for name in names)
    return f"| {shown} | {_default(argument)} | {_cell(text)} |".replace("|  |", "| |")


def _option_names(argument: Any) -> list[str]:
    """Its names; those that switch off what is off by default are left out."""
    negatives = () if argument.field_info.default is not False else argument.negatives
    return [name for name in dict.fromkeys(argument.names) if name not in negatives]


def _kinds(hint: Any) -> Iterator[Any]:
    for each in (hint, *get_args(hint)):
        if get_origin(each) is Literal:
            yield each


def _default(argument: Any) -> str:
    value = argument.field_info.default
    if value is inspect.Parameter.empty or value is None or isinstance(value, Path):
        return ""
    return "yes" if value is True else "" if value is False else f"`{value}`"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
