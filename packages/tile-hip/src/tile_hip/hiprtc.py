"""hiprtc, AMD's run-time compiler, through ctypes: HIP C++ text in, a code object out."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tile_core.errors import ToolchainError
from tile_hip.code_object import functions_in
from tile_hip.comgr import Comgr
from tile_hip.compiler import COMMON_OPTIONS, NAME, Output, clang_flags
from tile_hip.headers import header_texts
from tile_hip.hiprtc_library import Library

_COMPILATION = 6  # HIPRTC_ERROR_COMPILATION: the text is wrong, the log says how
_INVALID_OPTION = 5


@dataclass(frozen=True, slots=True)
class Hiprtc:
    """One loaded hiprtc.

    Parameters
    ----------
    library
        The ctypes library.
    version
        Such as ``"6.2"``; empty if its file does not tell.
    comgr
        What it compiles through.
    processors
        What it compiles for, such as ``"gfx942"``.
    """

    library: Any
    version: str
    comgr: Comgr
    processors: frozenset[str]

    @property
    def name(self) -> str:
        """Name and version."""
        return f"hiprtc {self.version}".rstrip()

    def supports(self, arch: str) -> bool:
        """Tell whether it compiles for `arch`: asked to compile for others it may crash."""
        return arch in self.processors

    def build(self, text: str, arch: str, flags: Sequence[str]) -> Output:
        """Compile kernels for `arch` against the device header; the assembly is read back.

        Raises
        ------
        ToolchainError
            If hiprtc fails for another reason than the text: then there is no log.
        """
        headers = header_texts()
        program = ctypes.c_void_p()
        names = (ctypes.c_char_p * len(headers))(*(n.encode() for n in headers))
        texts = (ctypes.c_char_p * len(headers))(*(t.encode() for t in headers.values()))
        self._check(
            self.library.hiprtcCreateProgram(
                ctypes.byref(program), text.encode(), NAME.encode(), len(headers), texts, names
            )
        )
        try:
            words = (f"--offload-arch={arch}", *COMMON_OPTIONS, *clang_flags(flags))
            options = (ctypes.c_char_p * len(words))(*(w.encode() for w in words))
            status = self.library.hiprtcCompileProgram(program, len(words), options)
            if status not in (0, _COMPILATION, _INVALID_OPTION):
                self._check(status)
            log = self._read(program, "ProgramLog").rstrip(b"\0").decode(errors="replace")
            if status:
                return Output(b"", "", log, False)
            code = self._read(program, "Code")
            return Output(code, self.comgr.disassemble(functions_in(code), arch), log, True)
        finally:
            self.library.hiprtcDestroyProgram(ctypes.byref(program))

    def _read(self, program: ctypes.c_void_p, what: str) -> bytes:
        size = ctypes.c_size_t()
        self._check(getattr(self.library, f"hiprtcGet{what}Size")(program, ctypes.byref(size)))
        buffer = ctypes.create_string_buffer(max(size.value, 1))
        self._check(getattr(self.library, f"hiprtcGet{what}")(program, buffer))
        return buffer.raw[: size.value]

    def _check(self, status: int) -> None:
        if status:
            words = self.library.hiprtcGetErrorString(status).decode()
            raise ToolchainError(f"{self.name} failed: {words}")


@cache
def load(found: Library) -> Hiprtc:
    """Load a library, and the Code Object Manager beside it; a process keeps each of them once.

    Raises
    ------
    ToolchainError
        If one of them cannot be loaded.
    """
    library, manager = _open(found.hiprtc), Comgr(_open(found.comgr))
    library.hiprtcGetErrorString.restype = ctypes.c_char_p
    return Hiprtc(library, found.version, manager, manager.processors())


def _open(path: Path) -> Any:
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise ToolchainError(f"{path} cannot be loaded: {error}") from error
