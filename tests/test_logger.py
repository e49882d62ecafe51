"""Loggers configure structlog before the first message, and not without one."""

from __future__ import annotations

import subprocess
import sys

from grove.logger import configure_later, configured, get_logger


def test_first_message_configures_once():
    calls: list[str] = []
    configure_later(lambda: calls.append("first"))
    configure_later(lambda: calls.append("second"))
    log = get_logger("grove")
    assert calls == []
    log.info("one")
    log.info("two")
    assert calls == ["second"]


def test_other_configuration_is_kept():
    calls: list[str] = []
    configure_later(lambda: calls.append("late"))
    configured()
    get_logger("grove").info("one")
    assert calls == []


def test_short_commands_do_not_import_what_they_do_not_use():
    for command in ("explain", "get", "topology", "tree"):
        module = f"grove.cli.commands.inspection.{command}"
        code = f"import sys, grove.cli.main, {module}; print(*sys.modules)"
        found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert not {"structlog", "prometheus_client", "grove.operator.caches.registry"} & set(
            found.stdout.split()
        ), module
