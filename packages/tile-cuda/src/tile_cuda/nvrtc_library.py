"""NVRTC, NVIDIA's run-time compiler, through ctypes: CUDA C++ text in, machine code out."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from tile_core.errors import ToolchainError
from tile_cuda.compile_errors import NAME
from tile_cuda.compiler import Output
from tile_cuda.headers import header_texts
from tile_cuda.nvrtc import nvrtc_options
from tile_cuda.toolkit import Toolkit, no_compiler, toolkits

_COMPILATION = 6  # NVRTC_ERROR_COMPILATION: the text is wrong, the log says how
_INVALID_OPTION = 5


@dataclass(frozen=True, slots=True)
class Nvrtc:
    """One loaded NVRTC.

    Parameters
    ----------
    library
        The ctypes library.
    toolkit
        Where it came from.
    version
        Such as ``(13, 0)``.
    architectures
        What it compiles for, such as ``"sm_80"``.
    """

    library: Any
    toolkit: Toolkit
    version: tuple[int, int]
    architectures: frozenset[str]

    @property
    def name(self) -> str:
        """Name and version."""
        return f"NVRTC {self.version[0]}.{self.version[1]}"

    def supports(self, arch: str) -> bool:
        """Tell whether it compiles for `arch`; ``sm_90a`` goes with ``sm_90``."""
        return arch.rstrip("af") in self.architectures

    def build(self, text: str, arch: str, flags: Sequence[str]) -> Output:
        """Compile kernels for `arch` against the device header.

        Raises
        ------
        ToolchainError
            As `compile`.
        """
        options = nvrtc_options(arch, self.toolkit.include, flags)
        return self.compile(text, NAME, options, header_texts())

    def compile(
        self, text: str, name: str, options: Sequence[str], headers: Mapping[str, str]
    ) -> Output:
        """Compile one translation unit.

        Parameters
        ----------
        name
            What the text is called in the log.
        options
            NVRTC's, the architecture among them.
        headers
            Texts by the name under which they are included.

        Raises
        ------
        ToolchainError
            If NVRTC fails for another reason than the text: then there is no log.
        """
        program = ctypes.c_void_p()
        names = (ctypes.c_char_p * len(headers))(*(n.encode() for n in headers))
        texts = (ctypes.c_char_p * len(headers))(*(t.encode() for t in headers.values()))
        self._check(
            self.library.nvrtcCreateProgram(
                ctypes.byref(program), text.encode(), name.encode(), len(headers), texts, names
            )
        )
        try:
            flags = (ctypes.c_char_p * len(options))(*(o.encode() for o in options))
            code = self.library.nvrtcCompileProgram(program, len(options), flags)
            if code not in (0, _COMPILATION, _INVALID_OPTION):
                self._check(code)
            log = self._text(program, "ProgramLog")
            if code:
                return Output(b"", "", log, False)
            return Output(self._read(program, "CUBIN"), self._text(program, "PTX"), log, True)
        finally:
            self.library.nvrtcDestroyProgram(ctypes.byref(program))

    def _read(self, program: ctypes.c_void_p, what: str) -> bytes:
        size = ctypes.c_size_t()
        self._check(getattr(self.library, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
        buffer = ctypes.create_string_buffer(size.value)
        self._check(getattr(self.library, f"nvrtcGet{what}")(program, buffer))
        return buffer.raw

    def _text(self, program: ctypes.c_void_p, what: str) -> str:
        return self._read(program, what).rstrip(b"\0").decode(errors="replace")

    def _check(self, code: int) -> None:
        if code:
            words = self.library.nvrtcGetErrorString(code).decode()
            raise ToolchainError(f"{self.name} failed: {words}")


@cache
def load(toolkit: Toolkit) -> Nvrtc:
    """Load a library; a process keeps each of them once.

    The built-in functions are opened first, by their path: NVRTC asks for them by name only, and
    another version's search path would not find them.

    Raises
    ------
    ToolchainError
        If the library cannot be loaded.
    """
    try:
        for path in toolkit.builtins:
            ctypes.CDLL(str(path))
        library = ctypes.CDLL(str(toolkit.library))
    except OSError as error:
        raise ToolchainError(f"{toolkit.library} cannot be loaded: {error}") from error
    library.nvrtcGetErrorString.restype = ctypes.c_char_p
    major, minor, count = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    library.nvrtcGetNumSupportedArchs(ctypes.byref(count))
    numbers = (ctypes.c_int * count.value)()
    library.nvrtcGetSupportedArchs(numbers)
    names = frozenset(f"sm_{number}" for number in numbers)
    return Nvrtc(library, toolkit, (major.value, minor.value), names)


def installed() -> Iterator[Nvrtc]:
    """Yield every NVRTC there is, loaded, in the order in which they are tried.

    Raises
    ------
    ToolchainError
        If one cannot be loaded.
    """
    for toolkit in toolkits():
        yield load(toolkit)


def compiler_for(arch: str) -> Nvrtc:
    """Return the first NVRTC found that compiles for `arch`.

    Raises
    ------
    ToolchainError
        If there is none; the hint says which package brings one.
    """
    tried = []
    for found in installed():
        if found.supports(arch):
            return found
        tried.append(found.name)
    raise no_compiler(arch, tuple(tried))
