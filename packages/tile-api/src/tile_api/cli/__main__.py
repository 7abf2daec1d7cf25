"""``python -m tile_api.cli`` is the command ``tile``."""

from __future__ import annotations

from tile_api.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
