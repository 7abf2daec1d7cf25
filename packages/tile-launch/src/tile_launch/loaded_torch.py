"""Torch, if this program has it: nothing here loads it."""

from __future__ import annotations

import sys
from typing import Any


def loaded_torch() -> Any:
    """Return torch if it is loaded; None before, and while another thread is importing it."""
    torch = sys.modules.get("torch")
    if torch is None or getattr(getattr(torch, "__spec__", None), "_initializing", False):
        return None
    return torch
