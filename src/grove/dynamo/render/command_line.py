"""Command lines: which engine they start, what they say, and how more is said to it."""

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
    """What a container runs."""

    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()

    @property
    def as_text(self) -> str:
        """All of it."""
        return " ".join((*self.command, *self.args))


def detect_frameworks(command: Command) -> list[str]:
    """The engines that a command line starts; more than one is nobody's intention."""
    line = command.as_text
    return [name for name in FRAMEWORKS if re.search(_starts(name), line)]


def _starts(name: str) -> str:
    return rf"(?<![\w.-])python[0-9.]*\s[^|&;]*?-m\s[^|&;]*?dynamo\.{name}"


def flag_value(command: Command, *spellings: str) -> int | None:
    """The number that follows a flag, as a word of its own or after `=`; the first one counts."""
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
    """Whether a flag is said."""
    return any(word.partition("=")[0] == flag for word in command.as_text.split())


def with_flags(command: Command, flags: Sequence[str], name: str, *, in_shell: bool) -> Command:
    """The command with more flags for the engine. `in_shell`: they hold arithmetic, which takes a shell."""
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
    """Where the words about the engine end, in a text for a shell."""
    for segment in _SEGMENT.finditer(text):
        python = _PYTHON_WORD.search(segment[0])
        if python is None:
            continue
        tokens = [each for each in _TOKEN.finditer(segment[0], python.end()) if name in each[0]]
        if tokens:
            return segment.start() + tokens[-1].end()
    return None


def quoted(word: str) -> str:
    """A word as a shell reads it. `$(NAME)` is left to the kubelet, which has replaced it by then."""
    if _PLAIN(word):
        return word
    return '"' + _ESCAPED.sub(lambda found: "\\" + found[0], word) + '"'
