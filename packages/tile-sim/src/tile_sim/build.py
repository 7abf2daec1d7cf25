"""What the emulator compiles: its runtime library and headers, once, and each printed kernel."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from functools import cache, partial
from pathlib import Path

from tile_core.codegen.source import INCLUDE_DIRECTORY
from tile_core.environment import processors
from tile_core.logs import log
from tile_core.progress import Progress
from tile_sim.cache import cache_folder, cached, digest_of
from tile_sim.toolchain import Compiler, dialect, find_compiler, run_compiler

HERE = Path(__file__).parent
RUNTIME = HERE / "runtime"
HEADERS = HERE / "include"

SHARED_HEADERS = (
    HEADERS / "tile_sim" / "device_abi.h",
    HEADERS / "tile_sim" / "types.h",
    INCLUDE_DIRECTORY / "tile_types.h",
)
"""What kernels include and the runtime, too."""

_RUNTIME_FLAGS = ("-O2", "-g1", "-pthread")
# What GPU compilers call functions means nothing here. Symbols are hidden, for what templates
# define is otherwise one object in all kernels of one name. A frame of many pages touches each of
# them: it finds the page below its stack, instead of somebody else's stack.
_KERNEL_FLAGS = (
    "-DTILE_SIM", "-D__device__=", "-D__host__=", "-D__forceinline__=inline",
    "-O1", "-g1", "-fno-exceptions", "-fno-rtti", "-fvisibility=hidden",
    "-fstack-clash-protection",
)  # fmt: skip

_QUICK_FLAGS = (
    "-fno-tree-pta", "-fno-tree-dominator-opts", "-fno-guess-branch-probability",
)  # fmt: skip
"""What g++ need not look for: an eighth of its time, and kernels run no slower, for accesses are
calls of the runtime."""

_TITLE = re.compile(r"^// \w+ for \w+$", re.MULTILINE)
"""The comment that names the machine: machines that get the same kernel share a library."""

_RETURN = re.compile(r"\breturn;")
"""Where threads leave a kernel before its end: others need not wait for them."""


def header_folders() -> tuple[Path, ...]:
    """Return where a printed kernel finds ``tile.h`` and the headers that it includes."""
    return (INCLUDE_DIRECTORY, HEADERS, RUNTIME)


def runtime_library() -> Path:
    """Return the path of the emulator's runtime, compiled for this machine if it is not yet."""
    compiler = find_compiler()
    sources = sorted(RUNTIME.glob("*.cpp"))
    texts = _digest((RUNTIME,), SHARED_HEADERS)
    digest = digest_of([compiler.identity, *dialect(), *_RUNTIME_FLAGS, texts])
    return cached(f"runtime-{digest}.so", partial(_make_runtime, compiler, sources))


def kernel_library(text: str, name: str, flags: Sequence[str] = (), *, warp_size: int = 32) -> Path:
    """Return the path of a shared library with the kernel that `text` holds.

    It is C++ in the form of the printer; messages call it `name`, and `flags` are the user's, after
    ours. A warp of the machine that the kernel is for has 32 or 64 threads.
    """
    compiler, runtime = find_compiler(), runtime_library()
    quick = _QUICK_FLAGS if can_precompile(compiler) else ()
    everything = (*_KERNEL_FLAGS, *quick, f"-DTILE_WARP_SIZE={warp_size}", *flags)
    digest = digest_of(
        [compiler.identity, *dialect(), *everything, str(runtime), _TITLE.sub("//", text),
         _digest(header_folders())]
    )  # fmt: skip
    make = partial(_make_kernel, compiler, text, name, everything, runtime)
    return cached(f"{name}-{digest}.so", make)


@cache
def _digest(folders: tuple[Path, ...], files: tuple[Path, ...] = ()) -> str:
    """Return the digest of the C++ files in `folders` and of `files`, read once in a process."""
    inside = (f for folder in folders for f in sorted(folder.rglob("*")) if f.suffix in _CXX)
    return digest_of(part for f in (*inside, *files) for part in (f.name, f.read_bytes()))


_CXX = frozenset({".cpp", ".h", ".inc", ".S"})


def _make_runtime(compiler: Compiler, sources: Sequence[Path], target: Path) -> None:
    """Compile the sources as `UNITS` texts: most of the work is headers, which each reads once."""
    flags = [*_RUNTIME_FLAGS, *(f"-I{folder}" for folder in header_folders())]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(processors()) as pool:

        def compile_unit(number: int) -> str:
            unit = Path(folder, f"{number}.cpp")
            unit.write_text("".join(f'#include "{source}"\n' for source in sources[number::UNITS]))
            made = str(unit.with_suffix(".o"))
            arguments = [*flags, "-c", "-o", made, str(unit)]
            run_compiler(compiler, arguments, what="the emulator's runtime", hint=_UPDATE)
            return made

        with Progress("compiling the emulator, once for this version", UNITS) as progress:
            progress.tell(0)
            made = [pool.submit(compile_unit, number) for number in range(UNITS)]
            for done, _ in enumerate(as_completed(made), 1):
                progress.tell(done)
        arguments = [
            "-shared",
            *_RUNTIME_FLAGS,
            "-o",
            str(target),
            *(unit.result() for unit in made),
        ]
        run_compiler(compiler, arguments, what="the emulator's runtime", hint=_UPDATE)


UNITS = 4
"""Texts that the runtime is compiled as: one takes 12 s of a processor, each further one 1.4 s."""
_UPDATE = "use g++ 9, clang 11 or newer; CXX names the compiler"


def _make_kernel(
    compiler: Compiler, text: str, name: str, flags: Sequence[str], runtime: Path, target: Path
) -> None:
    log("toolchain", lambda: f"{compiler.name} translates {name} for the emulator")
    with tempfile.TemporaryDirectory() as folder:
        source = f"{name}.cpp"
        Path(folder, source).write_text(_RETURN.sub("return tsim_leave();", text))
        include = [f"-I{path}" for path in header_folders()]
        if can_precompile(compiler):
            include[:0] = _compiled_header(compiler, [*flags, *include])
            # What it may need of libraries the runtime brings, which takes them from its own.
            flags = [*flags, "-nostdlib"]
        arguments = [*flags, *include, "-shared"]
        # Linked against the runtime by its path: both are loaded together, whoever comes first.
        arguments += ["-o", str(target), source, str(runtime)]
        run_compiler(compiler, arguments, what=f"the source of the kernel {name!r}", folder=folder)


def _compiled_header(compiler: Compiler, flags: Sequence[str]) -> list[str]:
    """Return the argument for the folder of ``tile.h`` in compiled form.

    Flags of users are seldom twice the same: what they ask for reads the header itself.
    """
    ours = {*_KERNEL_FLAGS, *_QUICK_FLAGS, *(f"-DTILE_WARP_SIZE={size}" for size in (32, 64))}
    if not all(flag in ours or flag.startswith("-I") for flag in flags):
        return []
    digest = digest_of([compiler.identity, *dialect(), *flags, _digest(header_folders())])
    return [f"-I{precompiled(compiler, 'tile.h', flags, digest)}"]


KEPT = 6
"""Folders of compiled headers, of some 5 MiB: two for each version of the headers."""


def can_precompile(compiler: Compiler) -> bool:
    """Tell whether the compiler finds a compiled header beside the header's name, as g++ does."""
    return compiler.name.startswith("g++")


def precompile(compiler: Compiler, header: str, flags: Sequence[str], target: Path) -> None:
    """Write the compiled form of `header`, as files that are compiled with `flags` can use it.

    The target is ``<header>.gch``, in a folder that comes before that of the header. A compiler
    that cannot use it goes on to the header itself.
    """
    arguments = [*flags, "-include", header, "-x", "c++-header", "-o", str(target), "/dev/null"]
    run_compiler(compiler, arguments, what=f"the header {header}")


def precompiled(compiler: Compiler, header: str, flags: Sequence[str], digest: str) -> Path:
    """Return the folder in the cache that holds the compiled form of `header`.

    The digest is of the compiler, the flags and everything that the header includes.
    """
    folder = cache_folder() / f"headers-{digest}"
    make = partial(precompile, compiler, header, flags)

    def make_and_clean(target: Path) -> None:
        make(target)
        _forget_the_oldest(folder.parent)

    return cached(f"{header}.gch", make_and_clean, folder).parent


def _forget_the_oldest(folder: Path) -> None:
    """Remove what was used longest ago; who compiles with it reads the header itself."""
    ages = []
    for path in folder.glob("headers-*/*.gch"):
        with suppress(FileNotFoundError):  # another process was faster
            ages.append((path.stat().st_mtime_ns, path.parent))
    for _, old in sorted(ages)[: -KEPT + 1]:
        shutil.rmtree(old, ignore_errors=True)
