"""What every backend for GPUs does first: from tiles to threads, as pass configurations say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tile_core.ir.stmt import Kernel
from tile_core.ops.thread_program import thread_programs
from tile_core.records import replace
from tile_core.simt.lower import lower_kernel
from tile_core.simt.lowering_options import choices_of
from tile_core.simt.pass_contexts import KernelContext
from tile_core.simt.program import DeviceProgram
from tile_core.simt.thread_programs import program_of
from tile_core.target import Target


def lower(
    module: Callable[[str], Any], kernel: Kernel, target: Target, options: Any
) -> DeviceProgram:
    """Choose rules and layouts, and spread the kernel over the threads of its blocks."""
    made_for = module("machine").machine(target.arch)
    made_for, rules = module("backend_compiler").allowed(made_for, options)
    if thread_programs(kernel):
        written = program_of(kernel, made_for)
        return replace(written, compile_flags=device_flags(options))
    choices = choices_of(options.config)
    context = KernelContext(target=target, machine=made_for, rules=rules, choices=choices)
    program = lower_kernel(kernel, context, options.passes)
    return replace(program, compile_flags=device_flags(options))


FAST_MATH = "--use_fast_math"
"""As one compiler spells it; backends translate it for others."""


def device_flags(options: Any) -> tuple[str, ...]:
    """Return what the compiler of the device is given beside its usual flags.

    ``tl.enable_fast_math`` has functions and divisions approximated, unless
    ``tl.disable_fast_math`` is set, too; ``tl.ptxas_register_usage_level`` is of one backend alone,
    and ``tl.device_compile_flags`` holds flags with blanks between them.

    `options` are what the driver hands to `Backend.lower`.
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
