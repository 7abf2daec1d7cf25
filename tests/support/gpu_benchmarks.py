"""The programs of benchmarks/gpu, which import each other by bare names."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

FOLDER = Path(__file__).parents[2] / "benchmarks" / "gpu"


def load(name: str) -> ModuleType:
    """Import a module of the folder; it is looked for behind everything that is installed."""
    if str(FOLDER) not in sys.path:
        sys.path.append(str(FOLDER))
    module = importlib.import_module(name)
    assert Path(str(module.__file__)).parent == FOLDER
    return module
