"""Command lines of engines: detects the engine, reads flags, and adds flags."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

FRAMEWORKS = ("vllm", "sglang", "trtllm")

_PYTHON = re.compile(r"(?:\S*/)?python[0-9.]*").fullmatch
_PYTHON_WORD = re.compile(r"(?<![\w.-])python[0-9.]*(?=\s)")
_SEGMENT = re.compile(r"[^|&;]+")
_TOKEN = re.compile(r"\S+")
_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./-]+").fullmatch
_ESCAPED = re.compile(r'\\|"|`|\$(?!\([A-Za-z_][A-Za-z0-9_]*\))')


class Command(Struct, frozen=True):
    """Command and arguments of a container."""

    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()

    @property
    def as_text(self) -> str:
        """Command and arguments as one line."""
        return " ".join((*self.command, *self.args))


def detect_frameworks(command: Command) -> list[str]:
    """The engines that a command line starts; validation rejects more than one."""
    line = command.as_text
    return [name for name in FRAMEWORKS if re.search(_starts(name), line)]


def _starts(name: str) -> str:
    return rf"(?<![\w.-])python[0-9.]*\s[^|&;]*?-m\s[^|&;]*?dynamo\.{name}"


def flag_value(command: Command, *spellings: str) -> int | None:
    """The number that follows the first of these flags, as the next word or after `=`."""
    words = command.as_text.split()
    for index, word in enumerate(words):
        flag, equals, value = word.partition("=")
        if flag not in spellings:
            continue
        value = value if equals else words[index + 1] if index + 1 < len(words) else ""
        if value.strip("\"'").isdecimal():
            return int(value.strip("\"'"))
    return None


def has_flag(command: Command, flag: str) -> bool:
    """Whether the command line has a flag."""
    return any(word.partition("=")[0] == flag for word in command.as_text.split())


def with_flags(command: Command, flags: Sequence[str], name: str, *, in_shell: bool) -> Command:
    """The command with more flags for the engine. `in_shell`: the flags contain arithmetic for a shell."""
    if command.command and _PYTHON(command.command[0]):
        if not in_shell:
            return Command(command.command, (*command.args, *flags))
        words = [quoted(word) for word in (*command.command, *command.args)]
        return Command(("sh", "-c"), (" ".join(("exec", *words, *flags)),))
    args = list(command.args)
    for index, arg in enumerate(args):
        if (at := _after_engine(arg, name)) is not None:
            args[index] = f"{arg[:at]} {' '.join(flags)}{arg[at:]}"
            break
    return Command(command.command, tuple(args))


def _after_engine(text: str, name: str) -> int | None:
    """The position after the arguments that name the engine, in a shell script."""
    for segment in _SEGMENT.finditer(text):
        python = _PYTHON_WORD.search(segment[0])
        if python is None:
            continue
        tokens = [each for each in _TOKEN.finditer(segment[0], python.end()) if name in each[0]]
        if tokens:
            return segment.start() + tokens[-1].end()
    return None


def quoted(word: str) -> str:
    """A word quoted for a shell. `$(NAME)` stays as it is: the kubelet expands it before."""
    if _PLAIN(word):
        return word
    return '"' + _ESCAPED.sub(lambda found: "\\" + found[0], word) + '"'
