"""Kernels for AArch64, run by qemu's emulation of the processor for programs of Linux.

What `tile_cpu.python_caller` would call in this process becomes a program of its own: the kernel's
object code, what it asks of its surroundings (``runtime/support.c``), a driver and what those need
of a library of C, on one thread. Arguments travel through a file and back. Every tensor begins, or
ends, at a page that cannot be touched, as in `support.guarded`.
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
_COMPILER = (sys.executable, "-m", "ziglang", "cc")
_HEADERS, _BARE = "aarch64-linux-musl", "aarch64-freestanding-none"
_PROCESSORS = {"cortex-a72": "cortex-a72", "aarch64": "cortex-a72", "neoverse-n1": "neoverse-n1"}
"""What qemu calls processors, so that instructions they lack end the program; others have all."""

_DRIVER = r"""
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct { int32_t type, pad; union { int64_t integer; double real; void *pointer; }; } Any;
extern int __tvm_ffi_main(void *self, Any *arguments, int32_t count, Any *result);
void tile_reason(char *out, size_t size);

static char *lent(size_t size, int at_begin) {
  size_t page = 4096, pages = (size + page - 1) / page * page;
  char *base = mmap(0, pages + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) _exit(100);
  if (pages && mprotect(base + page, pages, PROT_READ | PROT_WRITE)) _exit(100);
  return base + page + (at_begin ? 0 : pages - size);
}

static void take(int file, void *place, size_t size) {
  for (ssize_t part; size; place = (char *)place + part, size -= part)
    if ((part = read(file, place, size)) <= 0) _exit(101);
}

static void give(int file, const void *place, size_t size) {
  for (ssize_t part; size; place = (const char *)place + part, size -= part)
    if ((part = write(file, place, size)) <= 0) _exit(105);
}

// Of each argument: its type (1 integer, 3 real, 4 pointer), its value or the size of its memory,
// where in that its first element lies, and the memory.
int main(int count, char **names) {
  int in = open(names[1], O_RDONLY);
  int64_t head[2], sizes[64];
  char *places[64];
  Any arguments[64] = {0}, result = {0};
  take(in, head, sizeof head);
  if (head[0] > 64) return 102;
  for (int k = 0; k < head[0]; ++k) {
    int64_t told[3];
    take(in, told, sizeof told);
    arguments[k].type = told[0];
    arguments[k].integer = told[1];
    sizes[k] = 0;
    if (told[0] != 4) continue;
    sizes[k] = told[1];
    places[k] = lent(told[1], head[1]);
    take(in, places[k], told[1]);
    arguments[k].pointer = told[2] < 0 ? 0 : places[k] + told[2];
  }
  int failed = __tvm_ffi_main(0, arguments, head[0], &result);
  if (failed) {
    char reason[512];
    tile_reason(reason, sizeof reason);
    give(2, reason, strlen(reason));
    return 104;
  }
  int out = open(names[2], O_WRONLY | O_CREAT, 0600);
  for (int k = 0; k < head[0]; ++k) give(out, places[k], sizes[k]);
  return 0;
}
"""

_LIBRARY = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static long system_call(long number, long a, long b, long c, long d, long e, long f) {
  register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c, x3 __asm__("x3") = d, x4 __asm__("x4") = e;
  register long x5 __asm__("x5") = f;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                   : "memory");
  return x0;
}
int open(const char *name, int flags, ...) {
  return system_call(56, AT_FDCWD, (long)name, flags, 0600, 0, 0);
}
ssize_t read(int file, void *to, size_t n) { return system_call(63, file, (long)to, n, 0, 0, 0); }
ssize_t write(int file, const void *from, size_t n) {
  return system_call(64, file, (long)from, n, 0, 0, 0);
}
void *mmap(void *at, size_t size, int may, int flags, int file, off_t from) {
  long found = system_call(222, (long)at, size, may, flags, file, from);
  return found < 0 && found > -4096 ? MAP_FAILED : (void *)found;
}
int mprotect(void *at, size_t size, int may) {
  return system_call(226, (long)at, size, may, 0, 0, 0);
}
void _exit(int status) {
  for (;;) system_call(94, status, 0, 0, 0, 0, 0);
}

size_t strlen(const char *text) {
  size_t n = 0;
  while (text[n]) ++n;
  return n;
}
int snprintf(char *out, size_t size, const char *format, ...) { // always "%s"
  va_list rest;
  va_start(rest, format);
  const char *text = va_arg(rest, const char *);
  va_end(rest);
  size_t n = 0;
  for (; text[n] && n + 1 < size; ++n) out[n] = text[n];
  if (size) out[n] = 0;
  return n;
}
int posix_memalign(void **place, size_t alignment, size_t size) { // to pages
  *place = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return *place == MAP_FAILED;
}
void free(void *place) {}

// What the compiler's own library lacks of mathematics: W. Kahan's ways to keep small numbers.
double exp(double), log(double);
double log1p(double x) {
  double u = 1 + x;
  return u == 1 ? x : u > 1e300 ? log(u) : log(u) * x / (u - 1);
}
double tanh(double x) {
  if (x > 20 || x < -20) return x > 0 ? 1 : -1;
  double u = exp(2 * x), less = u == 1 ? 2 * x : (u - 1) * (2 * x) / log(u);
  return less / (less + 2);
}

// There is one thread.
int pthread_mutex_lock(pthread_mutex_t *m) { return 0; }
int pthread_mutex_unlock(pthread_mutex_t *m) { return 0; }
int pthread_key_create(pthread_key_t *key, void (*end)(void *)) { return 0; }
int pthread_setspecific(pthread_key_t key, const void *value) { return 0; }
int pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *x) { return 1; }
int pthread_join(pthread_t t, void **result) { return 1; }
int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set) { return -1; }
int __sched_cpucount(size_t size, const cpu_set_t *set) { return 1; }

int main(int, char **);
extern void (*__init_array_start[])(void), (*__init_array_end[])(void);
static _Alignas(64) char thread_local[1 << 16]; // zeros, as all of it begins
__attribute__((used)) static void begin(long *stack) {
  __asm__ volatile("msr tpidr_el0, %0" : : "r"(thread_local));
  for (void (**f)(void) = __init_array_start; f != __init_array_end; ++f) (*f)();
  _exit(main(stack[0], (char **)(stack + 1)));
}
__asm__(".global _start\n_start: mov x0, sp\n bl begin\n");
"""
"""What one thread asks of a library of C and of Linux: to build a whole library takes a minute."""


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
        Path(folder, "library.o").write_bytes(_library())
        told = ("-target", _BARE, "-static", "-O1", "-o", str(target))
        _compile(*told, *inputs, f"{folder}/library.o")
        return target.read_bytes()


@cache
def _library() -> bytes:
    return _objects(("library.c", _LIBRARY))


@cache
def _surroundings() -> bytes:
    return _objects(("driver.c", _DRIVER), ("support.c", export._SUPPORT.read_text()))


def _objects(*sources: tuple[str, str]) -> bytes:
    """Return what texts of C become, as one object."""
    told = ("-DENTRY_COUNT=0", '-DENTRY_KINDS=""', "-ffreestanding", "-fno-builtin")
    with tempfile.TemporaryDirectory() as folder:
        made = []
        for name, text in sources:
            source, code = Path(folder, name), Path(folder, f"{name}.o")
            source.write_text(text)
            _compile("-target", _HEADERS, "-c", "-O2", *told, "-o", str(code), str(source))
            made.append(str(code))
        both = Path(folder, "both.o")
        _compile("-target", _HEADERS, "-r", "-o", str(both), *made)
        return both.read_bytes()


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
