"""Output formats of commands whose results programs read as well."""

from __future__ import annotations

import sys
from typing import Any

from grove.cli.options import Output
from grove.cli.printable import escaped_json


def write_structured(value: object, output: Output) -> None:
    """Write a value of structs as JSON or YAML."""
    import msgspec

    if output == "json":
        text = escaped_json(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())
    else:
        import yaml

        plain: Any = msgspec.json.decode(msgspec.json.encode(value))
        text = "---\n" + yaml.dump(plain, Dumper=yaml.CSafeDumper, sort_keys=False, width=110).rstrip()
    sys.stdout.write(text + "\n")
