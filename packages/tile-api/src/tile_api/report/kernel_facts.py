"""What is known of a kernel without compiling it again: its signature, machine and launches."""

from __future__ import annotations

from collections.abc import Iterator

from tile_api.report.model import Fact
from tile_core.ir.node import walk
from tile_core.ir.printer import kernel_lines, print_expr_text
from tile_core.ir.stmt import Kernel, Launch


def facts_of_kernel(kernel: Kernel, target: str) -> Iterator[Fact]:
    """Yield what the kernel takes, what it was compiled for, and each launch."""
    head = kernel_lines(kernel)[0][0].removeprefix("kernel ").removesuffix(":")
    yield from (Fact("Signature", head), Fact("Target", target))
    for launch in (n for n in walk(kernel.body) if isinstance(n, Launch)):
        grid = " x ".join(print_expr_text(e) for e in launch.grid)
        threads = " x ".join(str(t) for t in launch.threads if t > 1) or "1"
        yield Fact("Launch", f"{grid} blocks of {threads} threads")
