"""Which pass makes a kernel's result wrong: programs of passes are run by the interpreter."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from tile_api.reducing.trial import Plan, arguments_of, difference, interpreted, options_of
from tile_core.driver import lower
from tile_core.errors import MissingFeature, TileError, UnsupportedOnTarget
from tile_core.ir.stmt import Kernel
from tile_core.pass_manager.instrumentation import recorded
from tile_core.plugins.host import PluginHost


def wrong_after(kernel: Kernel, plan: Plan, host: PluginHost) -> str:
    """Return the pass after which whole kernels compute something else, and what, or nothing.

    Passes behind the layouts leave no program that the interpreter runs: see `wrong_unless`.
    """
    with recorded(keeps_programs=True) as recording, suppress(TileError):  # as far as it gets
        lower(kernel, plan.target, host, options_of(kernel, plan))
    arguments = arguments_of(kernel, dict(plan.values), plan.seed)
    expected = interpreted(kernel, arguments)
    last = kernel
    for shot in recording.snapshots:
        if shot.program is last or not isinstance(shot.program, Kernel):
            continue
        last = shot.program
        try:
            found = interpreted(last, arguments)
        except (UnsupportedOnTarget, MissingFeature):
            continue  # the interpreter does not run such a program
        except TileError as error:
            return f"{shot.name}: {error.code}: {error.message}"
        told = difference(kernel, found, expected, plan.tolerance)
        if told:
            return f"{shot.name}: {told}"
    return ""


def wrong_unless(plan: Plan, host: PluginHost, fails: Callable[[tuple[str, ...]], bool]) -> str:
    """Return the optional pass without which the kernel does not fail any more, or nothing."""
    _, target = host.resolve(plan.target)
    names = [entry.name for entry in host.pipeline(target).passes if entry.is_optional]
    return next((name for name in names if not fails((name,))), "")
