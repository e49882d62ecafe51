"""python -m tools.krew: writes archives for krew and their manifest, `grove.yaml`, into a folder."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tools.krew.archive import build_archive, build_wheel, installed_wheels, locked_wheels
from tools.krew.manifest import manifest
from tools.krew.platforms import PLATFORMS, this_platform


def main() -> int:
    """Build the archives of all platforms, or with --local that of this machine."""
    parser = argparse.ArgumentParser(prog="python -m tools.krew", description=__doc__)
    parser.add_argument("--url", required=True, help="where the archives will be published")
    parser.add_argument("--output", type=Path, default=Path("dist/krew"), help="folder of the archives")
    parser.add_argument(
        "--local", action="store_true", help="this machine and Python only, from installed packages"
    )
    arguments = parser.parse_args()
    platforms = (this_platform(),) if arguments.local else PLATFORMS
    with tempfile.TemporaryDirectory(prefix="grove-krew-") as folder:
        work = Path(folder)
        sources = build_wheel(work)
        archives = {
            each: build_archive(
                each,
                sources,
                installed_wheels() if arguments.local else locked_wheels(each, work),
                arguments.output,
            )
            for each in platforms
        }
    (arguments.output / "grove.yaml").write_text(manifest(archives, arguments.url))
    for archive in archives.values():
        sys.stdout.write(f"{archive}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
