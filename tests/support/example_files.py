"""The files of examples/, and how a test imports one."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

EXAMPLES = Path(__file__).parents[2] / "examples"
_FILES = sorted(str(p.relative_to(EXAMPLES).with_suffix("")) for p in EXAMPLES.glob("*/*.py"))
TASKS = [name for name in _FILES if name.startswith("tasks/")]
"""Functions of whole arrays."""
DISTRIBUTED = [name for name in _FILES if name.startswith("distributed/")]
"""Programs for several ranks."""
RANKS = [name for name in _FILES if name.startswith("ranks/")]
"""Kernels across ranks, which are threads there."""
KERNELS = [name for name in _FILES if name not in (*TASKS, *DISTRIBUTED, *RANKS)]
"""Kernels of tiles or of threads, each file with its sizes and a check."""
HOPPER = [name for name in KERNELS if name.startswith("hopper/")]
"""Those that name what only Hopper GPUs have."""
NAMES = [name for name in KERNELS if name not in HOPPER]
"""Those that run anywhere, such as ``"gemm/split_k"``."""


def load(name: str) -> ModuleType:
    """Import an example under a name of its own: some files in different folders share one."""
    spec = importlib.util.spec_from_file_location(name.replace("/", "_"), EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
