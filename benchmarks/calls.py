"""What a call costs the host, and how long a program takes to its first result.

``python benchmarks/calls.py`` prints microseconds per call beside the floor of tvm-ffi (a C++
function that does nothing, called with the same tensors), on the processor and on a driver that
only notes what it is asked; ``python benchmarks/calls.py start`` prints seconds from the start of
an interpreter to the result of a kernel that another process compiled, and of what it imports.

Each number is the least of many: other programs can only add to it.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
import time
import timeit
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
CALLS, ROUNDS = 300, 400


def microseconds(call: Callable[[], object]) -> float:
    """Return what a call takes, at best."""
    call()
    call()
    return min(timeit.repeat(call, number=CALLS, repeat=ROUNDS)) / CALLS * 1e6


# Calls -------------------------------------------------------------------------------------


def add_kernel(out_idx: list[int] | None = None) -> Any:
    """Return ``C = A + B`` on eight numbers, for the processor."""
    import tile_api as tile
    import tile_api.language as T

    n = T.dynamic("n")

    @T.prim_func
    def add(
        A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32"), C: T.Tensor((n,), "float32")
    ):
        with T.Kernel(1):
            for i in T.Parallel(8):
                C[i] = A[i] + B[i]

    return tile.compile(add, out_idx=out_idx, target="cpu")


def on_processor() -> Iterator[tuple[str, float, float | None]]:
    """Yield what is called, microseconds, and those of tvm-ffi's floor."""
    import numpy as np
    import torch
    import tvm_ffi

    nothing = tvm_ffi.get_global_func("testing.nop")
    kernel, returning = add_kernel(), add_kernel([2])
    arrays = [np.ones(8, np.float32) for _ in range(3)]
    tensors = [torch.ones(8) for _ in range(3)]
    op = returning.as_torch_op("tile_benchmarks::add")
    for name, given in (("NumPy arrays", arrays), ("torch tensors", tensors)):
        a, b, c = given
        floor = microseconds(lambda a=a, b=b, c=c: nothing(a, b, c))
        yield f"3 {name}", microseconds(lambda a=a, b=b, c=c: kernel(a, b, c)), floor
        yield f"2 {name}, returning one", microseconds(lambda a=a, b=b: returning(a, b)), None
    yield from _in_bundles(kernel, arrays, tensors)
    a, b, c = tensors
    yield "torch.add(a, b, out=c)", microseconds(lambda: torch.add(a, b, out=c)), None
    yield "as_torch_op, 2 tensors", microseconds(lambda: op(a, b)), None
    yield from _in_jax(returning)


def _in_bundles(kernel: Any, *kinds: list[Any]) -> Iterator[tuple[str, float, None]]:
    import tile_launch
    from tile_launch import kernel as kernels

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "add.tile")
        kernel.save(path)
        in_c = tile_launch.load(path)
        found = kernels.installed_library
        kernels.installed_library = lambda: None
        by_python = tile_launch.load(path)
        kernels.installed_library = found
    for name, given in zip(("NumPy arrays", "torch tensors"), kinds, strict=True):
        a, b, c = given
        yield f"bundle, 3 {name}", microseconds(lambda a=a, b=b, c=c: in_c(a, b, c)), None
        told = f"bundle, 3 {name}, no C"
        yield told, microseconds(lambda a=a, b=b, c=c: by_python(a, b, c)), None


def _in_jax(kernel: Any) -> Iterator[tuple[str, float, None]]:
    try:
        import jax
    except ImportError:
        return
    function = kernel.as_jax()
    traced, a = jax.jit(function), jax.numpy.ones(8)
    yield "as_jax, 2 arrays", _waited(lambda: function(a, a)), None
    yield "as_jax under jax.jit", _waited(lambda: traced(a, a).block_until_ready()), None


def _waited(call: Callable[[], object]) -> float:
    call()
    return min(timeit.repeat(call, number=20, repeat=20)) / 20 * 1e6


def on_stub(folder: Path) -> Iterator[tuple[str, float, float | None]]:
    """Yield the same for launches of a CUDA kernel by a driver that only takes notes."""
    import torch

    import tile_api as tile
    import tile_api.language as T
    from tile_api.launching import Launcher
    from tile_core.plugins.gpu_launch import callable_of
    from tile_cuda.driver import open_driver
    from tile_launch.streams import allocator

    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return
    library = folder / "libcuda_stub.so"
    source = ROOT / "tests/unit/tile_cuda/stub_driver.c"
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-w", "-o", library, source], check=True)
    driver = open_driver(str(library))
    driver.library.stub_set(2, 0)
    n = T.dynamic("n")

    @T.prim_func
    def three(
        A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32"), C: T.Tensor((n,), "float32")
    ):
        with T.Kernel(n, threads=32) as i:
            C[i] = A[i] + B[i]

    @T.prim_func
    def nineteen(
        A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32"), C: T.Tensor((n,), "float32"),
        D: T.Tensor((n,), "float32"), E: T.Tensor((n,), "float32"),
        i0: T.int32, i1: T.int32, i2: T.int32, i3: T.int32, i4: T.int32, i5: T.int32, i6: T.int32,
        x0: T.float32, x1: T.float32, x2: T.float32, x3: T.float32, x4: T.float32, x5: T.float32,
        x6: T.float32,
    ):  # fmt: skip
        with T.Kernel(n, threads=32) as i:
            C[i] = A[i] + B[i] + x0 + x1 + x2 + x3 + x4 + x5 + x6
            E[i] = D[i] + i0 + i1 + i2 + i3 + i4 + i5 + i6

    for func, numbers in ((three, ()), (nineteen, (*range(7), *(0.5 * k for k in range(7))))):
        lowered = tile.lower(func, target="cuda:sm_80")
        arguments = _manifest(lowered).launches[0].arguments
        widths = [4 if hasattr(a, "dtype") else 8 for a in arguments]
        driver.library.stub_widths((ctypes.c_int * len(widths))(*widths), len(widths))
        launch = Launcher(
            lowered.lowered.kernel,
            callable_of(
                lowered.device_mod, b"", driver, lambda device: 0, lambda *tensors: 0,
                allocator(driver.allocate),
            ),
            "cpu",  # where the tensors are that stand for a GPU's
        )  # fmt: skip
        driver.library.cuCtxSetCurrent(ctypes.c_void_p(driver.context(0)))
        tensors = [torch.ones(8) for _ in range(3 if func is three else 5)]
        args = (*tensors, *numbers)
        yield (
            f"{len(args)} arguments",
            microseconds(lambda run=launch, args=args: _call(run, args)),
            None,
        )
        launch.quick = _not_in_c
        launch._is_learning = False
        by_python = microseconds(lambda run=launch, args=args: _call(run, args))
        yield f"{len(args)} arguments, without C", by_python, None


def _not_in_c(*args: Any) -> Any:
    return NotImplemented


def _call(launch: Any, args: tuple[Any, ...]) -> Any:
    """Do what calling a kernel does."""
    found = launch.quick(*args)
    return launch(*args) if found is NotImplemented else found


def _manifest(lowered: Any) -> Any:
    from tile_core.plugins.gpu_launch import launch_manifest

    return launch_manifest(lowered.device_mod)


def print_calls() -> None:
    """Print the table of calls."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(TILE_CACHE_DIR=folder)
        print("microseconds per call                 ours   tvm-ffi's floor   more than it")
        for title, rows in (("CPU", on_processor()), ("stub of CUDA", on_stub(Path(folder)))):
            print(f"-- {title}")
            for name, ours, floor in rows:
                beside = "" if floor is None else f"{floor:16.2f} {ours - floor:+14.2f}"
                print(f"{name:32} {ours:9.2f} {beside}")


# The start of a program --------------------------------------------------------------------

PROGRAM = """
import numpy as np
import tile_api as tile
import tile_api.language as T

@tile.jit(out_idx=[-1])
def matmul(M, N, K, block=32):
    @T.prim_func
    def main(A: T.Tensor((M, K), "float32"), B: T.Tensor((K, N), "float32"),
             C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block, block), "float32")
            B_shared = T.alloc_shared((block, block), "float32")
            C_local = T.alloc_fragment((block, block), "float32")
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, block), num_stages=2):
                T.copy(A[by * block, k * block], A_shared)
                T.copy(B[k * block, bx * block], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, C[by * block, bx * block])
    return main

kernel = matmul(64, 64, 64)
found = kernel(np.ones((64, 64), np.float32), np.ones((64, 64), np.float32))
assert found[0, 0] == 64
"""


def seconds(*command: str, rounds: int = 15) -> tuple[float, float]:
    """Return the least time of a command by the clock, and by the processor's."""
    best = cpu = float("inf")
    for _ in range(rounds):
        before, used = time.perf_counter(), sum(os.times()[2:4])
        subprocess.run([sys.executable, *command], check=True)
        best = min(best, time.perf_counter() - before)
        cpu = min(cpu, sum(os.times()[2:4]) - used)
    return best, cpu


def print_start() -> None:
    """Print how long a program takes whose kernel is in the cache."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(TILE_CACHE_DIR=folder)
        script = Path(folder, "program.py")
        script.write_text(PROGRAM)
        first = seconds(str(script), rounds=1)
        print("seconds at best                  by the clock   of the processor")
        for name, told in (
            ("the program, compiling", first),
            ("the program, cached", seconds(str(script))),
            ("import numpy", seconds("-c", "import numpy")),
            ("import tile_api", seconds("-c", "import tile_api")),
            ("an empty program", seconds("-c", "pass")),
        ):
            print(f"{name:28} {told[0]:15.3f} {told[1]:18.3f}")


def main(wanted: list[str]) -> None:
    """Print the tables named in `wanted`, or both."""
    tables = {"calls": print_calls, "start": print_start}
    for name in wanted or [*tables]:
        if name not in tables:
            sys.exit(f"no table {name!r}; there are {', '.join(tables)}")
        tables[name]()


if __name__ == "__main__":
    main(sys.argv[1:])
