"""Matrix instructions that a kernel names itself: which forms a machine has."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tile_core.errors import DtypeMismatch, UnsupportedOnTarget
from tile_core.ir.expr import AddressOf, Call, StringConst
from tile_core.machine import MmaInstruction, SimtMachine

CHOOSE_FOR_ME = "use T.copy and T.gemm, which choose the instructions of each machine"
"""The hint where a machine has nothing like what a kernel names."""

_SHAPE = re.compile(r"m\d+n\d+k\d+")
_SHAPES = ("m8n8k4", "m8n8k16", "m8n8k32",
           "m16n8k4", "m16n8k8", "m16n8k16", "m16n8k32", "m16n8k64")  # fmt: skip
_SHOWN = 3


def shape_of_product(expr: Call) -> str:
    """Return the shape that a call of `T.ptx_mma` names, such as ``"m16n8k16"``.

    Raises
    ------
    UnsupportedOnTarget
        If no machine has it, or the operands do not lie as instructions want them.
    """
    words = [a.value for a in expr.args if isinstance(a, StringConst)]
    shape = next((w for w in words if _SHAPE.fullmatch(w)), None)
    if shape not in _SHAPES:
        raise UnsupportedOnTarget(
            f"T.ptx_mma does not know the shape {shape or words!r}",
            span=expr.span,
            hint="use one of " + ", ".join(_SHAPES),
        )
    layouts = [w for w in words if w in ("row", "col")]
    if layouts not in ([], ["row", "col"]):
        raise UnsupportedOnTarget(
            f"T.ptx_mma multiplies a row-major A by a column-major B, not {layouts}",
            span=expr.span,
            hint='pass "row", "col", and load B transposed',
        )
    return shape


def must_be_offered(
    expr: Call, shape: str, operands: Sequence[AddressOf], machine: SimtMachine
) -> None:
    """Refuse a product that `machine` does not list, before any compiler does.

    Parameters
    ----------
    operands
        The registers of a, b and c, whose element types make the form.

    Raises
    ------
    DtypeMismatch
        If the call names other element types than the registers have.
    UnsupportedOnTarget
        If it does not; the hint names the forms that are most like it.
    """
    _check_names(expr, operands)
    named = MmaInstruction(shape, *(str(operand.buffer.dtype) for operand in operands))
    if named in machine.mma_instructions:
        return
    near = sorted(machine.mma_instructions, key=lambda p: (-_likeness(p, named), str(p)))[:_SHOWN]
    raise UnsupportedOnTarget(
        f"T.ptx_mma {named} is not an instruction of {machine.name}",
        span=expr.span,
        hint=f"it has {'; '.join(map(str, near))}" if near else CHOOSE_FOR_ME,
    )


def _check_names(expr: Call, operands: Sequence[AddressOf]) -> None:
    """Refuse registers of other types than the call says; words nobody knows say nothing.

    The types of a, b and c follow the layouts of the operands.
    """
    words = [a.value for a in expr.args if isinstance(a, StringConst)]
    types = words[words.index("col") + 1 :] if "col" in words else []
    for name, word, operand in zip("ABC", types, operands, strict=False):
        held = str(operand.buffer.dtype)
        if held not in _MEANINGS.get(word, (held,)) and word != held:
            raise DtypeMismatch(
                f"T.ptx_mma is told that {name} is {word}, and the registers "
                f"{operand.buffer.name!r} hold {held}",
                span=expr.span,
                hint="name the element type of the registers, or load others",
            )


_MEANINGS = {
    "fp16": ("float16",), "float16": ("float16",),
    "bf16": ("bfloat16",), "bfloat16": ("bfloat16",),
    "fp32": ("float32",), "float32": ("float32",),
    "fp64": ("float64",), "float64": ("float64",),
    "tf32": ("float32", "tfloat32"), "tfloat32": ("float32", "tfloat32"),
    "int8": ("int8",), "uint8": ("uint8",), "int32": ("int32",),
    "int4": ("int8",), "uint4": ("uint8",),  # bytes of two
    "e4m3": ("float8_e4m3fn",), "float8_e4m3": ("float8_e4m3fn",),
    "e5m2": ("float8_e5m2",), "float8_e5m2": ("float8_e5m2",),
}  # fmt: skip
"""What registers may hold for the words that name types in a call."""


def _likeness(offered: MmaInstruction, named: MmaInstruction) -> int:
    """Return how much two forms have in common; operands count more than accumulator and shape."""
    weighed = (
        (4, offered.a == named.a),
        (4, offered.b == named.b),
        (3, offered.c == named.c),
        (2, offered.shape == named.shape),
    )
    return sum(weight for weight, is_same in weighed if is_same)
