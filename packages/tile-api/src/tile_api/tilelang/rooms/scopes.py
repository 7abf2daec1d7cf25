"""`tilelang.utils.language`: in which memory a buffer is."""

from __future__ import annotations

from typing import Any


def _scope(buffer: Any) -> str:
    return str(buffer.scope())


def is_global(buffer: Any) -> bool:
    """Tell whether a buffer is in global memory."""
    return _scope(buffer) == "global"


def is_shared(buffer: Any, allow_dynamic: bool = True) -> bool:
    """Tell whether a buffer is in shared memory."""
    return _scope(buffer) in ("shared", "shared.dyn")


def is_shared_dynamic(buffer: Any) -> bool:
    """Tell whether a buffer is in shared memory whose size is known at launch."""
    return _scope(buffer) == "shared.dyn"


def is_fragment(buffer: Any) -> bool:
    """Tell whether a buffer is in registers, spread over the threads of a block."""
    return _scope(buffer) == "local.fragment"


def is_local(buffer: Any) -> bool:
    """Tell whether a buffer is in registers of one thread."""
    return _scope(buffer) == "local"


def is_local_var(buffer: Any) -> bool:
    """Tell whether a buffer is a variable of one thread."""
    return _scope(buffer) == "local.var"
