"""AMD's Code Object Manager, through ctypes: what its compiler knows, and disassembly.

It comes with hiprtc, which compiles through it. Source: AMD, "Code Object Manager" (amd_comgr.h).
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tile_core.errors import ToolchainError
from tile_hip.clang import TRIPLE

_READ = ctypes.CFUNCTYPE(
    ctypes.c_uint64, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p
)
_PRINT = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_void_p)
_ADDRESS = ctypes.CFUNCTYPE(None, ctypes.c_uint64, ctypes.c_void_p)


@dataclass(frozen=True, slots=True)
class Comgr:
    """One loaded Code Object Manager.

    Parameters
    ----------
    library
        The ctypes library.
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

        Parameters
        ----------
        functions
            Addresses and instructions by symbols: see `tile_hip.code_object.functions_in`.

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
