"""Imports of the init container: it runs in every pod that waits, so it loads the standard library only."""

from __future__ import annotations

import subprocess
import sys

HEAVY = {"aiohttp", "cryptography", "cyclopts", "msgspec", "prometheus_client", "rich", "structlog", "yaml"}


def test_initc_loads_only_the_standard_library():
    program = (
        "import sys; sys.argv[1:] = ['initc', '-p', 'a:0']\n"
        "from grove.cli.entry import main\n"
        "try: main()\n"
        "except SystemExit as end: print(end.code, *sys.modules)\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    code, *modules = ended.stdout.split()
    assert code == "1"
    assert HEAVY & set(modules) == set()
    assert {name for name in modules if name.startswith("grove.")} == {
        "grove.api",
        "grove.api.naming",
        "grove.api.naming.labels",
        "grove.api.naming.well_known",
        "grove.cli",
        "grove.cli.entry",
        "grove.cli.commands",
        "grove.cli.commands.initc",
        "grove.initc",
        "grove.initc.arguments",
        "grove.initc.watch_stream",
        "grove.initc.ready_wait",
        "grove.timing",
    }
