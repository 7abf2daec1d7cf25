"""The models of benchmarks/torch_models.py."""

from __future__ import annotations

import importlib.util
from pathlib import Path

_PLACE = Path(__file__).parents[2] / "benchmarks" / "torch_models.py"
_SPEC = importlib.util.spec_from_file_location("torch_models", _PLACE)
assert _SPEC is not None
assert _SPEC.loader is not None
_MODULE = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(_MODULE)
GPTBlock, MambaBlock, ResNetBlock = _MODULE.GPTBlock, _MODULE.MambaBlock, _MODULE.ResNetBlock
