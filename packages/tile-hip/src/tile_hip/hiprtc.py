"""hiprtc, AMD's run-time compiler: HIP C++ text in, a code object out."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tile_core.errors import ToolchainError
from tile_core.toolchains.compiler import Output, identity_of
from tile_core.toolchains.runtime_compiler import RuntimeCompiler
from tile_hip.clang import TRIPLE
from tile_hip.code_object import functions_in
from tile_hip.compiler import COMMON_OPTIONS, NAME, clang_flags, header_texts
from tile_hip.hiprtc_library import Library

_READ = ctypes.CFUNCTYPE(
    ctypes.c_uint64, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p
)
_PRINT = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_void_p)
_ADDRESS = ctypes.CFUNCTYPE(None, ctypes.c_uint64, ctypes.c_void_p)


@dataclass(frozen=True, slots=True)
class Comgr:
    """One loaded Code Object Manager, which comes with hiprtc: what it compiles through.

    Source: AMD, "Code Object Manager" (amd_comgr.h).
    """

    library: Any

    def processors(self) -> frozenset[str]:
        """Return what its compiler makes code for, such as ``"gfx942"``."""
        count = ctypes.c_size_t()
        self._check(self.library.amd_comgr_get_isa_count(ctypes.byref(count)))
        names = set()
        for number in range(count.value):
            name = ctypes.c_char_p()
            self._check(
                self.library.amd_comgr_get_isa_name(ctypes.c_size_t(number), ctypes.byref(name))
            )
            names.add((name.value or b"").decode().rsplit("-", 1)[-1])
        return frozenset(names)

    def disassemble(self, functions: Mapping[str, tuple[int, bytes]], arch: str) -> str:
        """Return the instructions of functions as text.

        `functions` are as `functions_in` returns them.

        Raises
        ------
        ToolchainError
            If some of the code is no instruction of `arch`.
        """
        return "\n".join(
            f"\t.type\t{name},@function\n{name}:\n{self._text(address, code, arch)}"
            f".Lfunc_end{number}:\n"
            for number, (name, (address, code)) in enumerate(functions.items())
        )

    def _text(self, address: int, code: bytes, arch: str) -> str:
        lines: list[str] = []

        def read(start: int, to: int, size: int, user: object) -> int:
            part = code[start - address : start - address + size]
            ctypes.memmove(to, part, len(part))
            return len(part)

        def write(text: bytes, user: object) -> None:
            lines.append(f"\t{text.decode().strip()}\n")

        callbacks = (_READ(read), _PRINT(write), _ADDRESS(lambda target, user: None))
        info = ctypes.c_uint64()
        name = f"{TRIPLE}--{arch}".encode()
        create = self.library.amd_comgr_create_disassembly_info
        self._check(create(name, *callbacks, ctypes.byref(info)))
        try:
            at = address
            while at < address + len(code):
                size = ctypes.c_uint64()
                step = self.library.amd_comgr_disassemble_instruction
                self._check(step(info, ctypes.c_uint64(at), None, ctypes.byref(size)))
                at += size.value
        finally:
            self.library.amd_comgr_destroy_disassembly_info(info)
        return "".join(lines)

    def _check(self, status: int) -> None:
        if status:
            words = ctypes.c_char_p()
            self.library.amd_comgr_status_string(status, ctypes.byref(words))
            text = (words.value or b"unknown").decode()
            raise ToolchainError(f"AMD's Code Object Manager failed: {text}")


@dataclass(frozen=True, slots=True)
class Hiprtc:
    """One hiprtc, in processes of its own.

    Its `version` is empty if its file does not tell.
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
    """Ask a library what it is, and load the Code Object Manager beside it; each of them once."""
    library, manager = RuntimeCompiler("hiprtc", (found.hiprtc,)), Comgr(_open(found.comgr))
    library.facts()
    return Hiprtc(library, found.version, manager, manager.processors())


def _open(path: Path) -> Any:
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise ToolchainError(f"{path} cannot be loaded: {error}") from error
