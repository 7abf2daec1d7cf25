"""TileLang's module paths: ``import tile_api.tilelang as tilelang``.

Every public name that TileLang programs import is found where they look for it. What this
project has is the same object under both names; what it has not can be imported, and raises a
coded error when it is used. Nothing is loaded before it is asked for: importing this package
loads neither TVM nor torch.

`install` goes further: ``import tilelang`` finds this package, and programs written for a GPU
find one, wherever kernels run. See ``docs/how-to/run-tilelang-programs.md``.
"""

from __future__ import annotations

import sys
from typing import Any

from tile_api.tilelang.installing import Installation as Installation
from tile_api.tilelang.installing import install as install
from tile_api.tilelang.installing import installed as installed
from tile_api.tilelang.installing import uninstall as uninstall
from tile_api.tilelang.modules import create, member
from tile_api.tilelang.paths import MODULES, STARS, VERSION

__version__ = VERSION
_OWN = ("Installation", "install", "installed", "uninstall")

create(__name__, MODULES, STARS, sys.modules)


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    value = member("tilelang", MODULES[""], None, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *MODULES[""]})


__all__ = sorted({*_OWN, *MODULES[""]})
