"""The operator's log, as a process writes it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

SCRIPT = """
import logging, warnings, structlog
from grove.api.configuration.types import LogFormat, LogLevel
from grove.operator import logs
from grove.operator.keys import ReplicaKey

logs.configure(LogLevel({level!r}), LogFormat({format!r}))
log = structlog.get_logger("grove.operator")
log.debug("noticed", key="a", action="none", reason="curiosity")
log.info("working", key=ReplicaKey("ns", "set", 1), action="lead", reason="leader")
log.warning("not published", key="a", action="retry", reason="conflict")
try:
    1 / 0
except ZeroDivisionError:
    log.exception("failed", key="b", action="exit", reason="a fault")
logging.getLogger("asyncio").warning("slow %s", "callback")
warnings.warn("deprecated")
"""


def log_lines(level: str = "info", format_: str = "json") -> list[str]:
    code = SCRIPT.format(level=level, format=format_)
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True
    ).stderr.splitlines()


def test_json_log_line_has_key_action_and_reason():
    working, unpublished, failed, slow, warned = map(json.loads, log_lines())
    assert list(working) == ["time", "level", "message", "key", "action", "reason"]
    assert working["time"].endswith("Z")
    assert (working["message"], working["key"]) == ("working", "ns/set/1")
    assert unpublished["level"] == "warning"
    assert "ZeroDivisionError" in failed["exception"]
    assert (slow["message"], slow["key"]) == ("slow callback", "asyncio")
    assert "deprecated" in warned["message"]


@pytest.mark.parametrize(("level", "first"), [("debug", "noticed"), ("info", "working"), ("error", "failed")])
def test_log_level_filters_messages(level, first):
    assert json.loads(log_lines(level)[0])["message"] == first


REPEATED = """
import structlog
from grove.api.configuration.types import LogFormat, LogLevel
from grove.operator import logs

logs.configure(LogLevel.INFO, LogFormat({format!r}))
secret = "a pod spec of a user"

def work(number):
    return number / 0

for number in range(3):
    try:
        work(number)
    except ZeroDivisionError:
        structlog.get_logger().exception("failed", key=str(number), action="retry", reason="a fault")
"""


@pytest.mark.parametrize("format_", ["json", "text"])
def test_traceback_is_logged_once_without_local_variables(format_):
    code = REPEATED.format(format=format_)
    text = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stderr
    assert text.count("Traceback (most recent call last)") == 1
    assert text.count("ZeroDivisionError as logged before") == 2
    assert "a pod spec of a user" not in text


def test_text_format_is_readable_without_colours():
    line = log_lines(format_="text")[0]
    assert "working" in line
    assert "key=ns/set/1" in line
    assert "\x1b" not in line  # colours are for terminals
