"""Which instruction multiplies: the inner step of a matrix product for a pair of types."""

from __future__ import annotations

from enum import Enum

from tile_core.dtypes import dtype_of
from tile_core.records import dataclass
from tile_cpu.cpu_machine import CpuMachine
from tile_cpu.llvm_memory_access import reinterpret
from tile_cpu.tir.build import extern, llvm_pure
from tile_cpu.tir.nodes import IntImm, PrimExpr


class MultiplyStep(Enum):
    """How one group of k is multiplied and added."""

    FMA = "multiply-add"
    DOT_BF16 = "vdpbf16ps"
    DOT_INT8 = "vpdpbusd"
    DOT_INT16 = "pmaddwd"
    DOT_SIGNED = "sdot"
    DOT_UNSIGNED = "udot"
    DOT_MIXED = "usdot"


@dataclass(frozen=True, slots=True)
class MicroKernel:
    """The inner step: ``acc[lane] += sum(a[x] * b[lane][x] for x in range(group))``.

    It reads elements of `a_dtype` and `b_dtype`: operands of other types are converted when copied.
    With `flip_b` the sign bit of each 8-bit B element is flipped when packed, so that exactly one
    side is unsigned; A then carries the sums of its rows to compensate.
    """

    step: MultiplyStep
    lanes: int  # accumulators in one vector register
    accumulator: str  # their element type
    group: int  # neighbours in k consumed by one step: 1, 2 or 4; above 1 it has 32 bits
    a_dtype: str
    b_dtype: str
    flip_b: bool = False

    @property
    def group_dtype(self) -> str:
        """Element type of packed memory: the element itself, or int32 holding a group."""
        return self.b_dtype if self.group == 1 else "int32"

    @property
    def group_bytes(self) -> int:
        """Bytes of one group in packed memory."""
        return dtype_of(self.group_dtype).bits // 8

    @property
    def chunk(self) -> int:
        """Elements of k (or n, when interleaving) that fill one vector of groups."""
        return self.lanes * self.group

    def accumulate(self, acc: PrimExpr, a: PrimExpr, b: PrimExpr) -> PrimExpr:
        """Return `acc` plus the products of two vectors of groups."""
        n = self.lanes
        if self.step is MultiplyStep.FMA:
            return a * b + acc
        if self.step is MultiplyStep.DOT_BF16:
            return extern(f"float32x{n}", f"tile_dot_bf16_x{n}", acc, a, b)
        if self.step is MultiplyStep.DOT_INT16:
            name = {
                16: "llvm.x86.avx512.pmaddw.d.512",
                8: "llvm.x86.avx2.pmadd.wd",
                4: "llvm.x86.sse2.pmadd.wd",
            }[n]
            pair = [reinterpret(x, "int16", 2 * n) for x in (a, b)]
            return acc + llvm_pure(f"int32x{n}", name, *pair)
        x86 = self.step is MultiplyStep.DOT_INT8
        name = f"avx512.vpdpbusd.{32 * n}" if x86 else f"{self.step.value}.v{n}i32.v{4 * n}i8"
        first, second = ((a, self.a_dtype), (b, self.b_dtype))
        if self.b_dtype == "uint8":  # where signs differ the unsigned factor comes first
            first, second = second, first
        return llvm_pure(
            f"int32x{n}",
            f"llvm.{'x86' if x86 else 'aarch64.neon'}.{name}",
            acc,
            reinterpret(first[0], first[1], 4 * n),
            reinterpret(second[0], second[1], 4 * n),
        )


SIGN_BITS = IntImm("int32", -0x7F7F7F80)  # 0x80 in each byte


def choose_kernel(
    machine: CpuMachine, a_dtype: str, b_dtype: str, c_dtype: str, *, grouped: bool = True
) -> MicroKernel:
    """Return the fastest exact step for ``C += A B`` with these element types.

    Steps that need groups of k, hence packed B, only if `grouped`: not where B is read in place.
    float16, bfloat16 and 8-bit floats accumulate in float32 unless C is float64; 8- and
    16-bit integers in int32 unless C is wider. Integers wrap modulo their width, so the
    width of the accumulator cannot be seen in a narrower C.
    """
    a, b, c = dtype_of(a_dtype), dtype_of(b_dtype), dtype_of(c_dtype)
    if a.is_float or b.is_float or c.is_float:
        is_bf16 = all(x == "bfloat16" or x.is_narrow_float for x in (a, b))
        if grouped and is_bf16 and c != "float64" and machine.multiplies_bf16:
            lanes = machine.lanes(32)
            return MicroKernel(MultiplyStep.DOT_BF16, lanes, "float32", 2, "bfloat16", "bfloat16")
        acc = "float64" if "float64" in (a, b, c) else "float32"
        return _multiply_add(machine, acc)
    if grouped and c.bits <= 32:
        kernel = _integer_dot(machine, a_dtype, b_dtype)
        if kernel is not None:
            return kernel
    acc = c_dtype if c.is_int and c.bits >= 32 else "int32"
    if c.bits < 64 and max(a.bits, b.bits) == 64:
        acc = "int64"
    return _multiply_add(machine, acc)


def _multiply_add(machine: CpuMachine, acc: str) -> MicroKernel:
    lanes = machine.lanes(dtype_of(acc).bits)
    return MicroKernel(MultiplyStep.FMA, lanes, acc, 1, acc, acc)


def _integer_dot(machine: CpuMachine, a: str, b: str) -> MicroKernel | None:
    lanes, is_bytes = machine.lanes(32), {a, b} <= {"int8", "uint8"}
    if is_bytes and machine.has("dotprod", *(["i8mm"] if a != b else ())):
        same = MultiplyStep.DOT_SIGNED if a == "int8" else MultiplyStep.DOT_UNSIGNED
        return MicroKernel(same if a == b else MultiplyStep.DOT_MIXED, lanes, "int32", 4, a, b)
    if not machine.has("avx2"):
        return None
    if is_bytes:
        wide = machine.vector_bytes == 64 and machine.has("avx512vnni")
        if wide or (machine.vector_bytes == 32 and machine.has("avxvnni")):
            b_read = {"int8": "uint8", "uint8": "int8"}[b] if a == b else b
            return MicroKernel(MultiplyStep.DOT_INT8, lanes, "int32", 4, a, b_read, flip_b=a == b)
    if {a, b} <= {"int8", "uint8", "int16"}:
        return MicroKernel(MultiplyStep.DOT_INT16, lanes, "int32", 2, "int16", "int16")
    return None
