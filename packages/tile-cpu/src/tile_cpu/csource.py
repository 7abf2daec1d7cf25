"""C text that kernels bring along, compiled with the system's C compiler."""

from __future__ import annotations

import ctypes
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from tile_core.errors import ToolchainError
from tile_core.pass_manager.instrumentation import timed
from tile_core.records import dataclass

_COMPILERS = ("cc", "gcc", "clang")
DIALECT = ("-D__device__=", "-D__host__=", "-D__forceinline__=inline", "-D__restrict__=restrict")
"""GPU qualifiers mean nothing here; C text shared with a GPU kernel still compiles."""

_TEXT = "import_source"


@dataclass(frozen=True, slots=True)
class SharedLibrary:
    """A compiled C text: the bytes of the shared object."""

    code: bytes

    def load(self) -> ctypes.CDLL:
        """Make its functions visible to code linked from now on; they stay for good."""
        from tempfile import TemporaryDirectory  # few kernels bring C code along

        with TemporaryDirectory() as folder:
            path = Path(folder, "extern.so")
            path.write_bytes(self.code)
            return ctypes.CDLL(str(path), mode=os.RTLD_GLOBAL | os.RTLD_NOW)


def find_compiler() -> str:
    """Return the C compiler: ``$CC``, or the first of cc, gcc and clang.

    Raises
    ------
    ToolchainError
        If there is none.
    """
    for name in (os.environ.get("CC", ""), *_COMPILERS):
        found = shutil.which(name) if name else None
        if found:
            return found
    raise ToolchainError(
        "a kernel brings C code along (T.import_source), and there is no C compiler",
        hint="install gcc or clang, or point CC at a compiler",
    )


def text_of(sources: Sequence[str], symbols: Mapping[str, str]) -> str:
    """Return C texts as one, with second names for functions: name in C -> symbol."""
    text = "".join(
        f'#line 1 "{_TEXT}{"" if len(sources) == 1 else f" {k}"}"\n{source}\n'
        for k, source in enumerate(sources, 1)
    )
    text += '#line 1 "functions the kernel calls"\n'
    for name, symbol in symbols.items():
        text += f'extern __typeof__({name}) {symbol} __attribute__((alias("{name}")));\n'
    return text


def compile_c(
    sources: Sequence[str], symbols: Mapping[str, str], flags: Sequence[str]
) -> SharedLibrary:
    """Compile C texts into one shared library, with second names for functions as in `text_of`.

    Raises
    ------
    ToolchainError
        If there is no compiler, or it refuses; its messages are attached.
    ToolchainCrash
        If it crashes, or does not come to an end.
    """
    from tempfile import TemporaryDirectory  # few kernels bring C code along

    from tile_core.toolchains.subprocesses import run_program

    compiler, text = find_compiler(), text_of(sources, symbols)
    with TemporaryDirectory() as folder:
        source, target = Path(folder, "extern.c"), Path(folder, "extern.so")
        source.write_text(text)
        command = [compiler, "-shared", "-fPIC", "-O3", "-march=native", *DIALECT, *flags]
        with timed(Path(compiler).name, "tool"):
            done = run_program([*command, "-o", str(target), str(source), "-lm"])
        if done.returncode:
            raise ToolchainError(
                f"{Path(compiler).name} does not accept the kernel's C code:\n"
                + done.stderr.replace(str(source), _TEXT).rstrip(),
                hint="lines are counted from the first of the text given to T.import_source; "
                f"the command was {' '.join([Path(compiler).name, *command[1:]])}",
            )
        return SharedLibrary(target.read_bytes())
