"""What is in the assembly of a kernel: its loops, and counts of what decides how fast they are.

Tests ask it of compiled kernels, and authors may: ``kernels_of(kernel.asm)["gemm"].main_loop()``.
Instructions: AMD, "CDNA3 Instruction Set Architecture".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

_FUNCTION = re.compile(r"^\s*\.type\s+(\w+),@function")
_END = re.compile(r"^\.Lfunc_end\d+:")
_LABEL = re.compile(r"^([.\w$]+):")
_INSTRUCTION = re.compile(r"^\s+([a-z]\w*)(?:\s+(.*))?$")
_LDS_LOAD = re.compile(r"^(buffer|global)_load_")
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction, such as ``ds_read_b128 v[0:3], v4 offset:64``.

    Parameters
    ----------
    opcode
        Such as ``"ds_read_b128"``.
    operands
        The rest of the line, without comments.
    """

    opcode: str
    operands: str

    @property
    def is_matrix_product(self) -> bool:
        """Whether the matrix unit executes it."""
        return self.opcode.startswith(("v_mfma_", "v_smfmac_"))

    @property
    def is_lds_load(self) -> bool:
        """Whether it copies from global memory straight into the block's memory."""
        if _LDS_LOAD.match(self.opcode) is None:
            return False
        return "_load_lds_" in self.opcode or "lds" in _WORD.findall(self.operands)

    @property
    def is_wide_lds_read(self) -> bool:
        """Whether each lane reads 16 bytes of the block's memory."""
        return self.opcode in ("ds_read_b128", "ds_read2_b64", "ds_read2st64_b64")

    @property
    def is_full_wait(self) -> bool:
        """Whether it waits for all loads from global memory."""
        return self.opcode == "s_waitcnt" and "vmcnt(0)" in self.operands

    @property
    def is_scratch(self) -> bool:
        """Whether it reaches memory in which a thread keeps what registers do not hold."""
        return self.opcode.startswith("scratch_")

    @property
    def writes_m0(self) -> bool:
        """Whether it sets the register that says where loads into the block's memory go."""
        return self.opcode.startswith("s_") and self.operands.startswith("m0,")


@dataclass(frozen=True, slots=True)
class Counts:
    """How many instructions of each kind there are.

    Parameters
    ----------
    matrix_products, lds_loads, wide_lds_reads, full_waits, scratch
        See `Instruction`.
    barriers
        Waits for all waves of the block.
    """

    matrix_products: int = 0
    lds_loads: int = 0
    wide_lds_reads: int = 0
    full_waits: int = 0
    scratch: int = 0
    barriers: int = 0


@dataclass(frozen=True, slots=True)
class AssemblyCode:
    """The instructions of one kernel, or of a loop of it.

    Parameters
    ----------
    instructions
        In the order of the text.
    labels
        Names of places, by the number of the instruction that follows.
    """

    instructions: tuple[Instruction, ...]
    labels: Mapping[str, int]

    def __iter__(self) -> Iterator[Instruction]:
        return iter(self.instructions)

    def __len__(self) -> int:
        return len(self.instructions)

    def count(self, prefix: str) -> int:
        """Return how many opcodes begin with `prefix`."""
        return sum(each.opcode.startswith(prefix) for each in self)

    def loops(self) -> tuple[AssemblyCode, ...]:
        """Return the innermost loops: from a label to the last branch back to it."""
        ends = self._ends()
        return tuple(
            self._part(start, end)
            for start, end in sorted(ends.items())
            if not any(_holds(start, end, *other) for other in ends.items())
        )

    def main_loop(self) -> AssemblyCode:
        """Return the innermost loop with most matrix products; of several, the longest.

        It may hold loops without any. A kernel without loops is its own main loop.
        """
        ends = self._ends()
        multiply = [(start, end) for start, end in ends.items() if self._products(start, end)]
        inner = [
            self._part(*loop)
            for loop in multiply
            if not any(_holds(*loop, *other) for other in multiply)
        ]
        return max(
            inner or self.loops(),
            key=lambda loop: (counts_of(loop).matrix_products, len(loop)),
            default=self,
        )

    def _products(self, start: int, end: int) -> int:
        return counts_of(self.instructions[start : end + 1]).matrix_products

    def _ends(self) -> dict[int, int]:
        """Return the last instruction of each loop by its first."""
        ends: dict[int, int] = {}
        for at, each in enumerate(self):
            start = self.labels.get(each.operands, at + 1) if _branches(each) else at + 1
            if start <= at:
                ends[start] = max(at, ends.get(start, at))
        return ends

    def _part(self, start: int, end: int) -> AssemblyCode:
        labels = {name: at - start for name, at in self.labels.items() if start <= at <= end}
        return AssemblyCode(self.instructions[start : end + 1], labels)


def _branches(each: Instruction) -> bool:
    return each.opcode.startswith(("s_branch", "s_cbranch"))


def _holds(start: int, end: int, inner_start: int, inner_end: int) -> bool:
    """Tell whether a loop holds another, smaller one."""
    return start <= inner_start and inner_end <= end and (start, end) != (inner_start, inner_end)


def kernels_of(assembly: str) -> Mapping[str, AssemblyCode]:
    """Return the functions in what clang wrote, by their symbols."""
    found: dict[str, AssemblyCode] = {}
    name = ""
    instructions: list[Instruction] = []
    labels: dict[str, int] = {}
    for line in assembly.splitlines():
        if head := _FUNCTION.match(line):
            name, instructions, labels = head[1], [], {}
        elif name and _END.match(line):
            found[name] = AssemblyCode(tuple(instructions), labels)
            name = ""
        elif name and (label := _LABEL.match(line)):
            labels[label[1]] = len(instructions)
        elif name and (each := _INSTRUCTION.match(line.split(";")[0].rstrip())):
            instructions.append(Instruction(each[1], (each[2] or "").strip()))
    return found


def counts_of(code: Iterable[Instruction]) -> Counts:
    """Return how many instructions of each kind there are."""
    each = tuple(code)
    return Counts(
        matrix_products=sum(one.is_matrix_product for one in each),
        lds_loads=sum(one.is_lds_load for one in each),
        wide_lds_reads=sum(one.is_wide_lds_read for one in each),
        full_waits=sum(one.is_full_wait for one in each),
        scratch=sum(one.is_scratch for one in each),
        barriers=sum(one.opcode == "s_barrier" for one in each),
    )


def unguarded_m0(code: AssemblyCode) -> tuple[int, ...]:
    """Return loads into the block's memory right behind the write of M0 that says where to.

    The machine needs a wait state in between: any other instruction, or ``s_nop``. Source: AMD,
    "CDNA3 Instruction Set Architecture", "Manually Inserted Wait States".
    """
    pairs = zip(code.instructions, code.instructions[1:], strict=False)
    return tuple(
        at + 1 for at, (first, second) in enumerate(pairs) if first.writes_m0 and second.is_lds_load
    )
