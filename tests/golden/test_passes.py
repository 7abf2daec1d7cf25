"""What each pass changes in some kernels, line by line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from difflib import unified_diff
from typing import Any

import pytest

from support import gpu_kernels
from tile_api.compile_request import request
from tile_api.settings import Settings
from tile_core import driver
from tile_core.ir.printer import kernel_lines, stmt_lines
from tile_core.ir.stmt import Kernel
from tile_core.pass_manager.instrumentation import recorded
from tile_core.plugins.host import default_host

Golden = Callable[..., None]


KERNELS: dict[str, Callable[[], Any]] = {
    "gemm": lambda: gpu_kernels.gemm(256, 128, 128),
    "attention": lambda: gpu_kernels.attention(256, 2, 64, causal=True),
    "softmax": lambda: gpu_kernels.softmax(62, 512),
    "split_k": lambda: gpu_kernels.split_k(128, 96, 1024),
    "gemm_int4": lambda: gpu_kernels.gemm_int4(128, 128, 256),
}


def printed(program: Any) -> list[str]:
    found = kernel_lines(program) if isinstance(program, Kernel) else stmt_lines(program)
    return [line for line, _ in found]


def changes(func: Any, target: str) -> Iterator[str]:
    """Yield each pass that changes a kernel, with the lines that go and come."""
    kernel, spec, options = request(func, None, None, target, None, None, Settings())
    with recorded(keeps_programs=True) as recording:
        driver.lower(kernel, spec, default_host(), options)
    before: dict[int, list[str]] = {0: printed(kernel)}
    for shot in recording.snapshots:
        after = printed(shot.program)
        old = before.get(shot.launch, after)  # each launch goes its own way from here
        before[shot.launch] = after
        lines = [*unified_diff(old, after, lineterm="", n=0)][2:]
        if lines:
            yield f"{shot.name}, launch {shot.launch}"
            yield from (line for line in lines if not line.startswith("@@"))


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("gemm", "cuda:sm_90a"),
        ("attention", "cuda:sm_80"),
        ("attention", "cpu:skylake-avx512"),
        ("softmax", "hip:gfx942"),
        ("split_k", "cpu:haswell"),
        ("gemm_int4", "cuda:sm_80"),
    ],
)
def test_changes(name: str, target: str, golden: Golden) -> None:
    golden("\n".join(changes(KERNELS[name](), target)))
