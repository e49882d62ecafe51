"""Reports each part of a measurement when it ends: a campaign takes an hour and a half."""

from __future__ import annotations

import json
import sys
import time
from typing import Any


def say(what: str, found: Any) -> None:
    """One line on standard error."""
    text = json.dumps(rounded(found))
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {what}: {text}\n")


def rounded(found: Any) -> Any:
    """The same, with four digits of each fraction."""
    return json.loads(json.dumps(found), parse_float=lambda text: float(f"{float(text):.4g}"))
