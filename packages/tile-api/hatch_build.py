"""Put the pages about errors into wheels, where ``tile explain`` finds them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ErrorPages(BuildHookInterface):  # type: ignore[type-arg]
    """Adds ``docs/errors`` of the repository; a source distribution has its own copy."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Say what else goes into the distribution."""
        pages = Path(self.root).parents[1] / "docs" / "errors"
        if version == "editable" or not pages.is_dir():
            return
        home = "tile_api" if self.target_name == "wheel" else "src/tile_api"
        build_data["force_include"][str(pages)] = f"{home}/error_pages"
