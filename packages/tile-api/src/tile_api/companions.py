"""What is said if the compiler under this package is not this project's: it cannot say it."""

from __future__ import annotations

from types import ModuleType


def foreign_core(core: ModuleType, version: str) -> ImportError:
    """Return TL7004 about the package `tile_core`, of which nothing of ours can be used.

    Of all other packages `tile_core.companions` tells it.
    """
    place = next(iter(getattr(core, "__path__", ())), core.__file__)
    return ImportError(
        f"[TL7004] the package tile_core in {place} is not this project's\n"
        "hint: python -m pip uninstall tile-core; then install tile-core "
        f"{version} from where tile-api {version} came from"
    )
