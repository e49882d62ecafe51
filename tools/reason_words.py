"""The meanings of all reasons as a module of the dashboard, from docs/reasons.md.

There is one text for each code: the first paragraph of its section.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from grove.reasons.codes import ReasonCode

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "reasons.md"
_HEAD = "/** What each reason means. Generated from docs/reasons.md by `make fix`. */\n"
_LINK = re.compile(r"\[([^]]+)]\([^)]*\)")


def page() -> str:
    """The module."""
    words = {code.value: meaning(code, DOCUMENT.read_text()) for code in ReasonCode}
    lines = (f"  {code}: {json.dumps(text, ensure_ascii=False)},\n" for code, text in words.items())
    return f"{_HEAD}export const REASON_WORDS = {{\n{''.join(lines)}}};\n"


def meaning(code: ReasonCode, document: str) -> str:
    """The first paragraph about a code, without links, marks and line breaks."""
    _, _, section = document.partition(f"\n### {code}\n")
    text = re.split(r"\nEvidence:|\n\n", section.strip(), maxsplit=1)[0]
    return " ".join(_LINK.sub(r"\1", text).replace("`", "").split())
