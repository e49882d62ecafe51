"""Removes secrets from text by their form: values of options and variables whose names say that they are
secret, credentials in URLs and headers, and tokens with a known beginning. Pure.

Names are compared at their end, because most options about tokens are none: `--max-tokens`, `--tokenizer`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

REMOVED = "(removed)"
_WORDS = r"(?:token|passw(?:or)?d|secret|credentials?|(?:api|access|secret|private)[-_]?key)"
_NAME = rf"[\w.-]{{0,64}}{_WORDS}"  # limited, so that the time grows with the length of the text only
_OPTION = re.compile(rf"--?{_NAME}", re.IGNORECASE).fullmatch
_ASSIGNED = re.compile(rf"(--?{_NAME}=).+", re.IGNORECASE | re.DOTALL).fullmatch
_VALUE = r"""(?!\(removed\))("[^"]*"|'[^']*'|[^\s"';|&)]+)"""
_INSIDE = re.compile(rf"((?<![\w-]){_NAME}(?![\w-])\s*=\s*|(?<![\w-])--?{_NAME}\s+){_VALUE}", re.IGNORECASE)
_FORMS = (
    (re.compile(r"(?<![\w-])eyJ[\w-]{8,}\.[\w-]+\.[\w-]*"), REMOVED),  # a JSON web token
    (
        re.compile(r"(?<![\w-])(?:hf_|nvapi-|sk-|ghp_|gho_|ghs_|github_pat_|glpat-|xox[abpr]-)[\w-]{16,}"),
        REMOVED,
    ),
    (re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"), REMOVED),
    (re.compile(r"\b((?:Bearer|Basic)\s+)[\w.~+/=-]{8,}", re.IGNORECASE), rf"\1{REMOVED}"),
    (re.compile(r"(://[^/\s:@\"']+:)[^@\s/\"']+@"), rf"\1{REMOVED}@"),
)


def without_tokens(text: str) -> str:
    """The text without what has the form of a token, or of a password in a URL."""
    for form, replacement in _FORMS:
        text = form.sub(replacement, text)
    return text


def without_secret_arguments(arguments: Iterable[Any]) -> list[Any]:
    """A command or its arguments without values of options and variables that are secret by their names."""
    found: list[Any] = []
    is_value = False
    for each in arguments:
        if not isinstance(each, str):
            is_value = False
            found.append(each)
        elif is_value and not each.startswith("-"):
            is_value = False
            found.append(REMOVED)
        else:
            is_value = _OPTION(each) is not None
            found.append(each if is_value else _cleaned(each))
    return found


def _cleaned(argument: str) -> str:
    if option := _ASSIGNED(argument):
        return f"{option[1]}{REMOVED}"
    return without_tokens(_INSIDE.sub(rf"\1{REMOVED}", argument))
