"""What may follow on a command line: commands, options, their values, and names from the cluster.

The answer has the form that kubectl expects of `kubectl_complete-grove`, that of Cobra: a candidate on
each line, with a description after a tab, then `:4`, or `:0` where the shell completes file names. Whatever
fails, nothing else is printed: a message would end up in the middle of the command line.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args, get_origin

from cyclopts import App

from grove.cli.completion.cluster_names import Cluster, ClusterNames
from grove.cli.printable import printable

NO_FILES, FILES = 4, 0
_GLOBAL = ("--help",)
_FOR_PROGRAMS = ("initc",)
"""Commands that users do not type."""


class Candidate(NamedTuple):
    """A word, and what it means."""

    word: str
    about: str = ""


class Answer(NamedTuple):
    """What may follow, and whether the shell completes file names instead."""

    candidates: Sequence[Candidate] = ()
    directive: int = NO_FILES


def main(words: Sequence[str]) -> int:
    """Print what may follow; the last word is the one to be completed."""
    answer = Answer()
    with Path(os.devnull).open("w") as unread, redirect_stderr(unread), suppress(Exception):
        answer = complete(words or [""])  # also a bug is silent: a traceback is no candidate
    lines = [_line(each) for each in answer.candidates]
    try:
        sys.stdout.write("".join(f"{line}\n" for line in (*lines, f":{answer.directive}")))
        sys.stdout.flush()
    except OSError:  # the shell does not wait any longer
        return 1
    return 0


def _line(candidate: Candidate) -> str:
    about = printable(candidate.about)
    return f"{printable(candidate.word)}\t{about}" if about else printable(candidate.word)


def complete(words: Sequence[str]) -> Answer:
    """What may follow these words; the last one is incomplete."""
    from grove.cli.main import app, use_own_help

    *before, current = words
    use_own_help(before)
    line = _CommandLine(app, before)
    if line.names:
        found = [Candidate(name, _summary(line.app, name)) for name in line.names]
        return Answer([each for each in found if each.word.startswith(current)])
    if line.open_option is not None:
        return _values(line, line.open_option, current)
    if current.startswith("-"):
        return _options(line, current)
    return _positional(line, current)


class _CommandLine:
    """The command that the words before the incomplete one select, and what of it is given already."""

    def __init__(self, app: App, words: Sequence[str]) -> None:
        self.app, rest = app, list(words)
        if rest[:1] == ["help"]:
            rest = rest[1:]
        while rest and rest[0] in _commands(self.app):
            self.app = self.app[rest.pop(0)]
        self.names = () if rest else _commands(self.app)
        takes = self.app.default_command is not None
        self.arguments: list[Any] = list(self.app.assemble_argument_collection()) if takes else []
        self.open_option: Any = None
        self.given: dict[str, str] = {}
        self.positional = 0
        for word in rest:
            self._read(word)

    def _read(self, word: str) -> None:
        if self.open_option is not None:
            self.given[self.open_option.names[0]] = word
            self.open_option = None
        elif word.startswith("-"):
            name, equals, value = word.partition("=")
            option = next((each for each in self.arguments if name in each.names), None)
            if equals and option is not None:
                self.given[option.names[0]] = value
            elif option is not None and not option.is_flag():
                self.open_option = option
        else:
            self.positional += 1

    @property
    def cluster(self) -> Cluster:
        """The cluster and the namespace that the options select."""
        file = self.given.get("--kubeconfig")
        return Cluster(
            Path(file).expanduser() if file else None,
            self.given.get("--context"),
            self.given.get("--namespace"),
        )


def _commands(app: App) -> tuple[str, ...]:
    return tuple(name for name in app if not name.startswith("-") and name not in _FOR_PROGRAMS)


def _summary(app: App, name: str) -> str:
    from grove.cli.main import COMMANDS
    from grove.cli.main import app as program

    if app is program and name in COMMANDS:
        return COMMANDS[name][1]  # `app[name]` imports the command
    text = app[name].help
    return text.strip().splitlines()[0] if text else ""


def _options(line: _CommandLine, current: str) -> Answer:
    found: dict[str, str] = dict.fromkeys(_GLOBAL, "Show what the command takes.")
    for argument in line.arguments:
        if argument.show and _is_option(argument):
            found |= dict.fromkeys(argument.names, argument.parameter.help or "")
    return Answer([Candidate(*each) for each in sorted(found.items()) if each[0].startswith(current)])


def _is_option(argument: Any) -> bool:
    return bool(argument.field_info.kind == argument.field_info.KEYWORD_ONLY)


def _values(line: _CommandLine, option: Any, current: str) -> Answer:
    """The values of an option."""
    hint = option.hint
    kinds = (hint, *get_args(hint)) if get_origin(hint) is not Literal else (hint,)
    for kind in kinds:
        if get_origin(kind) is Literal:
            return _matching((str(each) for each in get_args(kind)), current)
        if kind is Path or option.names[0] == "--file":
            return Answer(directive=FILES)
    names = ClusterNames(line.cluster)
    known = {
        "--namespace": names.namespaces,
        "--context": names.contexts,
        "--topology": names.topologies,
    }
    read = known.get(option.names[0])
    return _matching(read() if read is not None else (), current)


def _positional(line: _CommandLine, current: str) -> Answer:
    """A command with an argument `name` takes that of a set; one whose help says so, also kind/name."""
    wanted = [each for each in line.arguments if not _is_option(each)]
    if len(wanted) <= line.positional:
        return Answer()
    argument = wanted[line.positional]
    if argument.names[0] != "--name":
        return _values(line, argument, current)
    names, (word, slash, _) = ClusterNames(line.cluster), current.partition("/")
    if slash and "kind/name" in (getattr(line.app.default_command, "__doc__", "") or ""):
        return _matching((f"{word}/{name}" for name in names.of_kind(word)), current)
    return _matching(names.sets(), current)


def _matching(words: Iterator[str] | Sequence[str], current: str) -> Answer:
    return Answer([Candidate(word) for word in words if word.startswith(current)])
