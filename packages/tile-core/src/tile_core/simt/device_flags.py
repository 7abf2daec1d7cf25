"""The flags of a kernel for the compiler of a GPU: given ones, and those of pass configurations."""

from __future__ import annotations

from typing import Any

FAST_MATH = "--use_fast_math"
"""As one compiler spells it; backends translate it for others."""


def device_flags(options: Any) -> tuple[str, ...]:
    """Return what the compiler of the device is given beside its usual flags.

    ``tl.enable_fast_math`` has functions and divisions approximated, unless
    ``tl.disable_fast_math`` is set, too; ``tl.ptxas_register_usage_level`` is of one backend alone,
    and ``tl.device_compile_flags`` holds flags with blanks between them.

    Parameters
    ----------
    options
        What the driver hands to `Backend.lower`.
    """
    flags = list(options.compile_flags)
    is_exact = options.config("tl.disable_fast_math", False)
    if options.config("tl.enable_fast_math", False) and not is_exact:
        flags.append(FAST_MATH)
    level = options.config("tl.ptxas_register_usage_level")
    if level is not None:
        flags.append(f"--ptxas-options=--register-usage-level={level}")
    flags += str(options.config("tl.device_compile_flags", "")).split()
    return tuple(flags)
