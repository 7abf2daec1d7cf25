"""What code generation needs to know about a processor: one row of facts."""

from __future__ import annotations

import platform
from enum import Enum
from functools import cache

from tile_core.errors import TargetError
from tile_core.records import dataclass


class Isa(Enum):
    """An instruction set architecture, by the name that its users know."""

    X86_64 = "x86-64"
    AARCH64 = "AArch64"


@cache
def host_isa() -> Isa:
    """Return the instruction set architecture of this process.

    Raises
    ------
    TargetError
        If there is no code generation for it.
    """
    name = platform.machine().lower()
    if name in ("x86_64", "amd64"):
        return Isa.X86_64
    if name in ("aarch64", "arm64"):
        return Isa.AARCH64
    raise TargetError(
        f"the CPU backend runs on x86-64 and AArch64, this machine is {platform.machine()}",
        hint="use target 'interpret', the reference interpreter",
    )


_LINUX_TRIPLES = {
    Isa.X86_64: "x86_64-unknown-linux-gnu",
    Isa.AARCH64: "aarch64-unknown-linux-gnu",
}
_LLVM_SPELLING = {"sse4_2": "sse4.2", "bmi1": "bmi"}
_VECTOR_512 = frozenset({"avx512f", "avx512bw", "avx512dq", "avx512vl"})


@dataclass(frozen=True, slots=True)
class CpuMachine:
    """What code generation needs to know about a processor.

    Parameters
    ----------
    system
        Operating system of a foreign machine, in LLVM's spelling of triples; Linux if empty.
    packs_in_kernel
        Whether panels of second factors are best written by the kernel that multiplies them
        with its first rows, whose multiplications then hide loads and stores; measured, machine
        by machine. Elsewhere a pass of its own writes them before.
    dot_row_bytes
        Of rows of a transposed second factor that several passes read, one after the other, a
        pass takes so many bytes at a time, which stay in the first-level cache for the others;
        measured, machine by machine. 0 for whole rows.
    streams_unaided
        Whether a second factor that one row is multiplied with comes fastest if nothing of it is
        fetched ahead: loads run ahead far enough, and the hardware follows them; measured,
        machine by machine.
    """

    name: str  # what users write after ``cpu:``
    cpu: str  # LLVM's name for it (-mcpu)
    features: frozenset[str]  # instruction sets that generated code may use, in LLVM's spelling
    l1_bytes: int  # data cache of one core
    l2_bytes: int
    isa: Isa = Isa.X86_64
    disabled: tuple[str, ...] = ()  # features of `cpu` it lacks: virtual machines mask some
    l3_bytes: int = 32 << 20  # last-level cache that one core reaches
    l1_ways: int = 8
    l2_ways: int = 8
    system: str = ""
    packs_in_kernel: bool = False
    dot_row_bytes: int = 0
    streams_unaided: bool = False

    @property
    def vector_bytes(self) -> int:
        """Bytes of the widest vector register that is used: 64, 32 or 16."""
        if self.features >= _VECTOR_512:
            return 64
        return 32 if "avx2" in self.features else 16

    @property
    def vector_registers(self) -> int:
        """Number of architectural vector registers."""
        return 32 if self.vector_bytes == 64 or self.isa is Isa.AARCH64 else 16

    @property
    def fuses_multiply_add(self) -> bool:
        """Whether one instruction multiplies, adds, and rounds once."""
        return self.isa is Isa.AARCH64 or "fma" in self.features

    @property
    def multiplies_bf16(self) -> bool:
        """Whether one instruction adds the products of two pairs of bfloat16 to a float32."""
        return self.has("avx512bf16") or self.has("bf16")

    @property
    def triple(self) -> str:
        """The target triple of a foreign machine; empty where this process is of its kind."""
        if self.system:
            return self.system
        return "" if self.isa is host_isa() else _LINUX_TRIPLES[self.isa]

    def lanes(self, bits: int) -> int:
        """Return how many elements of `bits` bits fill one vector register."""
        return self.vector_bytes * 8 // bits

    def has(self, *features: str) -> bool:
        """Tell whether every one of `features` may be used."""
        return self.features.issuperset(features)

    def llvm_target(self) -> dict[str, object]:
        """Return TVM's description of this machine."""
        spec: dict[str, object] = {"kind": "llvm", "mcpu": self.cpu}
        if self.triple:
            spec["mtriple"] = self.triple
        if self.disabled:
            spec["mattr"] = [f"-{_LLVM_SPELLING.get(f, f)}" for f in self.disabled]
        return spec


def row(
    name: str,
    features: frozenset[str],
    l1: tuple[int, int],
    l2: tuple[int, int],
    isa: Isa = Isa.X86_64,
) -> CpuMachine:
    """Return the facts of a processor that LLVM knows by the name that users write.

    Of each cache those are its KiB and its ways.
    """
    (l1_kib, l1_ways), (l2_kib, l2_ways) = l1, l2
    sizes = l1_kib * 1024, l2_kib * 1024
    return CpuMachine(name, name, features, *sizes, isa, l1_ways=l1_ways, l2_ways=l2_ways)
