"""hiprtc, AMD's run-time compiler: HIP C++ text in, a code object out."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tile_core.errors import ToolchainError
from tile_core.toolchains.compiler import Output, identity_of
from tile_core.toolchains.runtime_compiler import RuntimeCompiler
from tile_hip.code_object import functions_in
from tile_hip.comgr import Comgr
from tile_hip.compiler import COMMON_OPTIONS, NAME, clang_flags
from tile_hip.headers import header_texts
from tile_hip.hiprtc_library import Library


@dataclass(frozen=True, slots=True)
class Hiprtc:
    """One hiprtc, in processes of its own.

    Parameters
    ----------
    library
        The library, and how it is asked.
    version
        Such as ``"6.2"``; empty if its file does not tell.
    comgr
        What it compiles through.
    processors
        What it compiles for, such as ``"gfx942"``.
    """

    library: RuntimeCompiler
    version: str
    comgr: Comgr
    processors: frozenset[str]

    @property
    def name(self) -> str:
        """Name and version."""
        return f"hiprtc {self.version}".rstrip()

    @property
    def identity(self) -> str:
        """Name and version, and which file it is."""
        return identity_of(self.name, self.library.libraries[-1])

    def supports(self, arch: str) -> bool:
        """Tell whether it compiles for `arch`: asked to compile for others it may crash."""
        return arch in self.processors

    def build(self, text: str, arch: str, flags: Sequence[str]) -> Output:
        """Compile kernels for `arch` against the device header; the assembly is read back.

        Raises
        ------
        ToolchainError
            If hiprtc fails for another reason than the text: then there is no log.
        ToolchainCrash
            If it crashes, or does not come to an end.
        """
        options = (f"--offload-arch={arch}", *COMMON_OPTIONS, *clang_flags(flags))
        log, parts = self.library.compile(
            text, NAME, options, header_texts(), ("Code",), name=self.name
        )
        if parts is None:
            return Output(b"", "", log, False)
        code = parts["Code"]
        return Output(code, self.comgr.disassemble(functions_in(code), arch), log, True)


@cache
def load(found: Library) -> Hiprtc:
    """Ask a library what it is, and load the Code Object Manager beside it; each of them once.

    Raises
    ------
    ToolchainError
        If one of them cannot be loaded.
    """
    library, manager = RuntimeCompiler("hiprtc", (found.hiprtc,)), Comgr(_open(found.comgr))
    library.facts()
    return Hiprtc(library, found.version, manager, manager.processors())


def _open(path: Path) -> Any:
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise ToolchainError(f"{path} cannot be loaded: {error}") from error
