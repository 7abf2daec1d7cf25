"""Kernels for AArch64, run by qemu's emulation of the processor for programs of Linux.

What `tile_cpu.python_caller` would call in this process becomes a program of its own: the kernel's
object code, what it asks of its surroundings (``runtime/support.c``) and a driver, linked without a
dynamic loader. Arguments travel through a file and back. Every tensor begins, or ends, at a page
that cannot be touched, as in `support.guarded`.
"""

from __future__ import annotations

import ctypes
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from support.guarded import SIDES, Side, cases_by_name
from tile_core.driver import build
from tile_core.errors import LaunchError
from tile_core.ir.stmt import Kernel
from tile_core.plugins.host import installed_plugins
from tile_cpu import export, python_caller
from tile_cpu.backend_compiler import CpuArtifact
from tile_cpu.cpu_machine import Isa
from tile_cpu.csource import DIALECT, text_of
from tile_launch.views import strides_of

QEMU = shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static")
WHY_NOT = "qemu-aarch64 is not installed (Debian: apt install qemu-user)"
TIME_LIMIT = 120
_REFUSED = 104  # what the driver returns where the kernel left a reason
_COMPILER = (sys.executable, "-m", "ziglang", "cc", "-target", "aarch64-linux-musl")
_PROCESSORS = {"cortex-a72": "cortex-a72", "aarch64": "cortex-a72", "neoverse-n1": "neoverse-n1"}
"""What qemu calls processors, so that instructions they lack end the program; others have all."""

_DRIVER = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct { int32_t type, pad; union { int64_t integer; double real; void *pointer; }; } Any;
extern int __tvm_ffi_main(void *self, Any *arguments, int32_t count, Any *result);
void tile_reason(char *out, size_t size);

static char *lent(size_t size, int at_begin) {
  size_t page = sysconf(_SC_PAGESIZE), pages = (size + page - 1) / page * page;
  char *base = mmap(0, pages + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) exit(100);
  if (pages && mprotect(base + page, pages, PROT_READ | PROT_WRITE)) exit(100);
  return base + page + (at_begin ? 0 : pages - size);
}

// Of each argument: its type (1 integer, 3 real, 4 pointer), its value or the size of its memory,
// where in that its first element lies, and the memory.
int main(int count, char **names) {
  FILE *in = fopen(names[1], "rb");
  int64_t head[2], sizes[64];
  char *places[64];
  Any arguments[64] = {0}, result = {0};
  if (!in || fread(head, 8, 2, in) != 2 || head[0] > 64) return 101;
  for (int k = 0; k < head[0]; ++k) {
    int64_t told[3];
    if (fread(told, 8, 3, in) != 3) return 102;
    arguments[k].type = told[0];
    arguments[k].integer = told[1];
    sizes[k] = 0;
    if (told[0] != 4) continue;
    sizes[k] = told[1];
    places[k] = lent(told[1], head[1]);
    if (fread(places[k], 1, told[1], in) != (size_t)told[1]) return 103;
    arguments[k].pointer = told[2] < 0 ? 0 : places[k] + told[2];
  }
  fclose(in);
  int failed = __tvm_ffi_main(0, arguments, head[0], &result);
  if (failed) {
    char reason[512];
    tile_reason(reason, sizeof reason);
    fprintf(stderr, "%s", reason);
    return 104;
  }
  FILE *out = fopen(names[2], "wb");
  for (int k = 0; k < head[0]; ++k) fwrite(places[k], 1, sizes[k], out);
  return fclose(out) ? 105 : 0;
}
"""


def check_arm(name: str, machine: str) -> None:
    """Check the case of the contract called `name` on an ARM processor."""

    def run(kernel: Kernel, args: Sequence[Any]) -> None:
        build(kernel, f"cpu:{machine}", installed_plugins()).executable(*args)

    with emulated_arm():
        cases_by_name()[name].check(run)


@contextmanager
def emulated_arm() -> Iterator[None]:
    """Meanwhile, kernels for AArch64 run here, slowly, twice: memory ends on either side.

    Both runs must give the same bits.
    """
    callable_of = python_caller.callable_of

    def emulated(artifact: CpuArtifact) -> Callable[..., None]:
        if artifact.lowered.machine.isa is not Isa.AARCH64:
            return callable_of(artifact)
        return _launcher(artifact)

    with patch.object(python_caller, "callable_of", emulated):
        yield


def _launcher(artifact: CpuArtifact) -> Callable[..., None]:
    """Return `tile_cpu.python_caller`'s launcher, whose entry gets tensors, not addresses."""
    lowered = artifact.lowered
    program = _program(artifact)
    names: dict[str, Any] = {
        "entry": lambda *values: _run(program, lowered.machine.name, values),
        "address": lambda tensor: tensor,
        "pointer": lambda tensor: tensor,
        "Status": ctypes.c_int32,
        "status_address": lambda status: status,
        "fail": lambda number: python_caller._fail(lowered, number),
        "flush": lambda: None,
        "packed": python_caller._packed,
        "strides": strides_of,
        "solved": python_caller._solver(lowered),
    }
    exec(python_caller.launcher_source(lowered), names)
    run: Callable[..., None] = names["run"]
    return run


def _program(artifact: CpuArtifact) -> bytes:
    """Link a program of the kernel."""
    with tempfile.TemporaryDirectory() as folder:
        code, target = Path(folder, "kernel.o"), Path(folder, "kernel")
        artifact.module.library.write_to_file(str(code), "o")
        Path(folder, "driver.o").write_bytes(_surroundings())
        inputs = [str(code), f"{folder}/driver.o"]
        if artifact.lowered.kernel.sources:
            text = text_of(artifact.lowered.kernel.sources, artifact.lowered.extern_names)
            Path(folder, "extern.c").write_text(text)
            inputs += [*DIALECT, f"{folder}/extern.c"]
        _compile("-static", "-O1", "-o", str(target), *inputs, "-lm", "-lpthread")
        return target.read_bytes()


@cache
def _surroundings() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        made = [Path(folder, name) for name in ("driver.c", "driver.o", "support.o", "both.o")]
        made[0].write_text(_DRIVER)
        told = ("-DENTRY_COUNT=0", '-DENTRY_KINDS=""')
        _compile("-c", "-O2", "-o", str(made[1]), str(made[0]))
        _compile("-c", "-O2", *told, "-o", str(made[2]), str(export._SUPPORT))
        _compile("-r", "-o", str(made[3]), str(made[1]), str(made[2]))
        return made[3].read_bytes()


def _compile(*arguments: str) -> None:
    done = subprocess.run([*_COMPILER, *arguments], capture_output=True, text=True)
    assert not done.returncode, done.stderr


def _run(program: bytes, machine: str, values: tuple[Any, ...]) -> None:
    assert QEMU is not None, WHY_NOT
    results, other = (_results(program, machine, values, side) for side in SIDES)
    assert results == other, "results depend on where tensors lie"
    for value in values:
        if isinstance(value, ctypes.c_int32):
            value.value = int.from_bytes(results[:4], "little", signed=True)
            results = results[4:]
        elif hasattr(value, "__array__"):
            low, size, _ = _span(value)
            ctypes.memmove(low, results[:size], size)
            results = results[size:]


def _results(program: bytes, machine: str, values: tuple[Any, ...], side: Side) -> bytes:
    """Return the memory of all arguments after a run."""
    with tempfile.TemporaryDirectory() as folder:
        code, given, back = (Path(folder, name) for name in ("kernel", "given", "back"))
        code.write_bytes(program)
        code.chmod(0o700)
        told = struct.pack("<qq", len(values), side == "begin")
        given.write_bytes(told + b"".join(map(_argument, values)))
        command = [
            str(QEMU),
            "-cpu",
            _PROCESSORS.get(machine, "max"),
            *map(str, (code, given, back)),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIME_LIMIT)
        if side == SIDES[0]:
            print(done.stdout, end="")
        if done.returncode == _REFUSED:
            raise LaunchError(done.stderr)
        assert not done.returncode, f"the program ended with {done.returncode}: {done.stderr}"
        return back.read_bytes()


def _argument(value: Any) -> bytes:
    if value is None:
        return struct.pack("<qqq", 4, 0, -1)
    if isinstance(value, ctypes.c_int32):
        return struct.pack("<qqq", 4, 4, 0) + bytes(value)
    if hasattr(value, "__array__"):
        low, size, first = _span(value)
        return struct.pack("<qqq", 4, size, first) + ctypes.string_at(low, size)
    if isinstance(value, float):
        return struct.pack("<qdq", 3, value, 0)
    return struct.pack("<qqq", 1, int(value), 0)


def _span(value: Any) -> tuple[int, int, int]:
    """Return where the memory of a tensor begins, its bytes, and where the first element lies."""
    array = np.asarray(value)
    if not array.size:
        return 0, 0, 0
    low, high = np.lib.array_utils.byte_bounds(array)
    return low, high - low, array.ctypes.data - low
