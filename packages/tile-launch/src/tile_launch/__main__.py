"""``python -m tile_launch x.tile`` says what is inside a bundle."""

from __future__ import annotations

import sys

from tile_launch.describe_bundle import describe
from tile_launch.errors import TileError


def main(arguments: list[str]) -> int:
    """Print what each of the named bundles holds; return what the process ends with."""
    if not arguments or arguments[0] in ("-h", "--help"):
        sys.stderr.write("usage: python -m tile_launch BUNDLE...\n")
        return 0 if arguments else 2
    for path in arguments:
        try:
            sys.stdout.write(describe(path))
        except (TileError, OSError) as error:
            sys.stderr.write(f"{error}\n")
            return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
