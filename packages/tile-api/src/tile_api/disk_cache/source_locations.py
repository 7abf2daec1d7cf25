"""Where the program at hand says what an error of a kernel from the cache is about.

Entries hold no places: the same kernel may have been moved to another line or file since it was
compiled. What fails is found again in the program by what it is: the assertion by its text, a
launch or a condition of the host by its number among its kind, a parameter by its name.
"""

from __future__ import annotations

from collections.abc import Callable

from tile_core.errors import Span, TileError
from tile_core.ir.names import Names
from tile_core.ir.node import walk
from tile_core.ir.print_expr import print_expr
from tile_core.ir.stmt import Check, Kernel
from tile_core.ir.stmt import Launch as LaunchStatement
from tile_launch.manifest import Launch, Manifest


def teller(kernel: Kernel, manifest: Manifest) -> Callable[[TileError], TileError]:
    """Return what gives errors of a launcher their place in `kernel`."""

    def told(error: TileError) -> TileError:
        match error.subject:
            case ("failure", int() as number):
                error.span = _assertion(kernel, manifest, number)
            case ("step", int() as number):
                error.span = _step(kernel, manifest, number)
            case ("parameter", str() as name):
                from tile_core.plugins.launch_errors import point_at_parameter

                point_at_parameter(error, kernel, name)
        return error

    return told


def _assertion(kernel: Kernel, manifest: Manifest, number: int) -> Span | None:
    """Return where the assertion stands that failed: the n-th with its text."""
    if not 0 <= number < len(manifest.failures):
        return None
    text = manifest.failures[number]
    nth = manifest.failures[:number].count(text)
    found = [
        node.span
        for node in walk(kernel)
        if isinstance(node, Check) and text in (node.message, print_expr(node.cond, Names()))
    ]
    return found[min(nth, len(found) - 1)] if found else None


def _step(kernel: Kernel, manifest: Manifest, number: int) -> Span | None:
    """Return where a step of the host stands; several may come from one launch."""
    if not 0 <= number < len(manifest.steps):
        return None
    step = manifest.steps[number]
    if isinstance(step, Launch):
        launches = [n.span for n in walk(kernel) if isinstance(n, LaunchStatement)]
        nth = sum(isinstance(s, Launch) for s in manifest.steps[:number])
        return launches[min(nth, len(launches) - 1)] if launches else None
    message = getattr(step, "message", "")
    for node in walk(kernel):
        if isinstance(node, Check) and node.message and node.message in message:
            return node.span
    return kernel.span
