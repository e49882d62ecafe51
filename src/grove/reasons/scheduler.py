"""Why a scheduler found no node: its own message, with the code that the words of Kubernetes' scheduler
mean."""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from textwrap import shorten

from grove import timing
from grove.reasons.codes import ReasonCode as Code
from grove.reasons.model import ObjectName, WaitReason

_PHRASES = (
    (re.compile(r"persistent ?volume|volume zone|pvc\(s\)", re.IGNORECASE), Code.VOLUME_NOT_BOUND),
    (
        re.compile(r"resource ?claim|allocate all claims|device class", re.IGNORECASE),
        Code.CLAIM_NOT_ALLOCATED,
    ),
    (re.compile(r"Insufficient |Too many pods"), Code.INSUFFICIENT_RESOURCES),
    (re.compile(r"were unschedulable"), Code.NODE_CORDONED),
    (re.compile(r"node\.kubernetes\.io/unschedulable"), Code.NODE_CORDONED),
    (re.compile(r"node\.kubernetes\.io/(not-ready|unreachable)"), Code.NODE_NOT_READY),
    (re.compile(r"taint"), Code.NODE_TAINT),
    (re.compile(r"node affinity|node selector|node name"), Code.NODE_SELECTOR_MISMATCH),
)  # fmt: skip
"""Phrases of Kubernetes' scheduler, the most specific first."""
_COUNTED = re.compile(
    r"(?<!\d)(\d{1,9}) ((?:node\(s\)|Insufficient|Too many|cannot allocate)[^,;.{]*(?:\{[^}]*\})?)"
)
"""Nodes and what they are refused for. Longer numbers count no nodes, and would take long to read."""
_AVAILABLE = re.compile(r"^\d+/\d+ nodes are available: ")
_NOT_TRIED = (Code.NODE_CORDONED, Code.NODE_NOT_READY, Code.NODE_TAINT, Code.NODE_SELECTOR_MISMATCH)
"""Nodes of which the scheduler looks at nothing else. The others are those that pods could use."""


def scheduler_reason(text: str, scheduler: str = "", about: ObjectName | None = None) -> WaitReason:
    """The reason for pods that a scheduler could not place, with its message."""
    code, line = _code_and_line(text[: timing.SCHEDULER_MESSAGE_READ])
    message = f"{scheduler} says: {line}" if scheduler else line
    return WaitReason(code, message, about, changing=True)


@lru_cache(timing.SCHEDULER_MESSAGES_KEPT)
def _code_and_line(text: str) -> tuple[Code, str]:
    """Code and line of a message. Kept, because hundreds of pods have the same message in each plan."""
    line = shorten(" ".join(text.split()), timing.SCHEDULER_MESSAGE_LENGTH, placeholder=" ...")
    return _code(text), line


def _code(text: str) -> Code:
    """What most nodes are refused for. Those that pods may use count first, and of these a shortage, which
    others may end."""
    found = text.partition("preemption:")[0]
    counts: Counter[Code] = Counter()
    for number, phrase in _COUNTED.findall(found):
        counts[_phrase_code(phrase) or Code.SCHEDULER_MESSAGE] += int(number)
    if Code.INSUFFICIENT_RESOURCES in counts:
        return Code.INSUFFICIENT_RESOURCES
    tried = Counter({code: count for code, count in counts.items() if code not in _NOT_TRIED})
    if counts:
        return (tried or counts).most_common(1)[0][0]
    # What is wrong with the pod itself has no count of nodes.
    return _phrase_code(_AVAILABLE.sub("", found)) or Code.SCHEDULER_MESSAGE


def _phrase_code(phrase: str) -> Code | None:
    return next((code for words, code in _PHRASES if words.search(phrase)), None)
