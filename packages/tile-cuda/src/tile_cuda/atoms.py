"""The matrix instructions of NVIDIA's warps, as data. PTX ISA, "Warp-level matrix instructions".

An instruction is offered where the machine has its feature. Layouts are built from patterns of
8 rows; tests prove each of them by running it on integers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

from tile_core.dtypes import dtype_of
from tile_core.layout import Fragment
from tile_core.machine import SimtMachine
from tile_core.simt.atoms import MatrixAtom, atom_of_words, register_types

ROUNDS_FLOAT32 = "float32_as_tf32"
"""A feature that users grant, and no machine has: products of float32 may round to tf32."""

_QUADS = tuple(tuple(t for t in range(32) if t // 4 % 4 == quad) for quad in range(4))
"""Volta computes in four groups of eight threads: 0-3 with 16-19, 4-7 with 20-23, ..."""

_INT8 = ("int8", "uint8")
_INT4 = ("int4", "uint4")
_FLOAT8 = ("float8_e4m3fn", "float8_e5m2")


def _rows() -> Iterator[tuple[str, str, tuple[str, str, str]]]:
    """Yield function, feature and element types of all but Volta's."""
    for total in ("float32", "float16"):
        half = ("float16", "float16", total)
        yield "mma_m16n8k16", "mma_m16n8k16", half
        yield "mma_m16n8k8", "mma_m16n8k8_f16", half
    bfloat = ("bfloat16", "bfloat16", "float32")
    yield "mma_m16n8k16", "mma_bf16", bfloat
    yield "mma_m16n8k8", "mma_bf16", bfloat
    for kind in ("float32", "tfloat32"):
        yield "mma_m16n8k8", "mma_tf32", (kind, kind, "float32")
        yield "mma_m16n8k4", "mma_tf32", (kind, kind, "float32")
    yield "mma_m8n8k4", "mma_f64", ("float64", "float64", "float64")
    for a in _INT8:
        for b in _INT8:
            yield "mma_m16n8k32", "mma_int8_m16n8k32", (a, b, "int32")
            yield "mma_m16n8k16", "mma_int8_m16n8k32", (a, b, "int32")
            yield "mma_m8n8k16", "mma_int8_m8n8k16", (a, b, "int32")
    for a in _INT4:
        for b in _INT4:
            yield "mma_m16n8k64", "mma_int4", (a, b, "int32")
    for a in _FLOAT8:
        for b in _FLOAT8:
            yield "mma_m16n8k32", "mma_fp8", (a, b, "float32")


def _volta_atom(c_dtype: str, a_order: str = "row", b_order: str = "col") -> MatrixAtom:
    """Return ``m8n8k4``: each of four groups of threads multiplies 8x4 by 4x8.

    A thread holds four neighbours of a row or of a column of each operand, as the form says.

    The groups form a square: an element of an operand is held by two of them. Which row of the
    16 a group calls its row `r` is ours to say: ``r % 4 + 8 * (r // 4)``, and 4 more for the
    second group, so that neighbouring threads read neighbouring rows and no banks collide.
    """
    half = dtype_of("float16")

    def accumulator(i: Any, j: Any) -> tuple[Any, Any]:
        quad = i // 4 % 2 + j // 4 % 2 * 2
        if c_dtype == "float16":
            return i % 4 + quad * 4 + i // 8 * 16, j % 4 + j // 8 * 4
        thread = i % 2 + j // 2 % 2 * 2 + quad * 4 + i // 8 * 16
        return thread, j % 2 + i // 2 % 2 * 2 + j // 8 * 4

    def rows(i: Any, k: Any, r: Any) -> tuple[Any, Any]:
        thread, slot = (i % 4, k) if a_order == "row" else (k, i % 4)
        return thread + (i // 4 % 2 + r * 2) * 4 + i // 8 * 16, slot

    def columns(k: Any, j: Any, r: Any) -> tuple[Any, Any]:
        thread, slot = (j % 4, k) if b_order == "col" else (k, j % 4)
        return thread + (r + j // 4 % 2 * 2) * 4 + j // 8 * 16, slot

    orders = (a_order, b_order)
    return MatrixAtom(
        function="mma_m8n8k4" + ("" if orders == ("row", "col") else f"_{a_order}_{b_order}"),
        feature="mma_m8n8k4",
        a_dtype=half,
        b_dtype=half,
        c_dtype=dtype_of(c_dtype),
        a=Fragment((16, 4), rows, replicate=2),
        b=Fragment((4, 16), columns, replicate=2),
        c=Fragment((16, 16), accumulator),
        parts=_QUADS,
        orders=orders,
    )


@cache
def _volta_atoms(c_dtype: str) -> tuple[MatrixAtom, ...]:
    return tuple(_volta_atom(c_dtype, a, b) for a in ("row", "col") for b in ("col", "row"))


def all_atoms() -> tuple[MatrixAtom, ...]:
    """Return every instruction of the table; those with more products per step come first."""
    made = [_atom(*row) for row in _rows()]
    made += [atom for total in ("float32", "float16") for atom in _volta_atoms(total)]
    return _largest_first(made)


@cache
def atoms_for(machine: SimtMachine, a: str, b: str, c: str) -> tuple[MatrixAtom, ...]:
    """Return the instructions of `machine` for element types, the largest first."""
    made = [_atom(*row) for row in _rows() if row[2] == (a, b, c) and machine.has(row[1])]
    if machine.has("mma_m8n8k4") and (a, b) == ("float16", "float16"):
        made += _volta_atoms(c) if c in ("float32", "float16") else ()
    return _largest_first(made)


@cache
def atoms_for_nibbles(machine: SimtMachine, a: str, b: str, c: str) -> tuple[MatrixAtom, ...]:
    """Return the instructions that multiply 4-bit integers, two in each byte of the operands.

    They hold the bytes of their operands as the instructions for bytes do, so K counts bytes.
    """
    if a not in _INT8 or b not in _INT8 or c != "int32":
        return ()
    return tuple(
        replace(_atom(bytes_function, feature, (a, b, c)), function=function)
        for function, bytes_function, feature in _NIBBLES
        if machine.has(feature)
    )


_NIBBLES = (
    ("mma_m16n8k64", "mma_m16n8k32", "mma_int4"),
    ("mma_m8n8k32", "mma_m8n8k16", "mma_int4_m8n8k32"),
)
"""Function, that of the instruction for bytes, and feature."""


@cache
def atoms_with_scales(
    machine: SimtMachine, a: str, b: str, nibbles: bool
) -> tuple[MatrixAtom, ...]:
    """Return the instructions with scales, of 8-bit floats or of pairs of 4-bit ones in bytes.

    They hold their operands as the instructions for bytes do.
    """
    if not machine.has(SCALED):
        return ()
    if nibbles and (a, b) == ("uint8", "uint8"):
        pairs = _atom("mma_m16n8k32", SCALED, (a, b, "float32"))
        return (replace(pairs, function="mma_scaled_m16n8k64"),)
    if nibbles or a not in _FLOAT8 or b not in _FLOAT8:
        return ()
    plain = _atom("mma_m16n8k32", SCALED, (a, b, "float32"))
    return (replace(plain, function="mma_scaled_m16n8k32"),)


SCALED = "scaled_mma"
"""The feature of machines whose instructions multiply by scales."""


@cache
def atoms_for_tiles(machine: SimtMachine, a: str, b: str, c: str) -> tuple[MatrixAtom, ...]:
    """Return the instructions that multiply tiles of elements `a` and `b` exactly.

    If none takes these types, one is chosen whose types hold all their values: operands in
    shared memory are converted on their way into registers. Tiles of 4-bit integers that have
    a byte per element are multiplied as bytes; see `atoms_for_nibbles` for others. Instructions
    that would round float32 to tf32 are taken for tiles of that type, or where the machine is
    said to do so.
    """
    if "float32" in (a, b) and not machine.has(ROUNDS_FLOAT32):
        return ()
    for left, right in register_types(a, b):
        found = atoms_for(machine, left, right, c)
        if found:
            return found
    return ()


@cache
def _atom(function: str, feature: str, dtypes: tuple[str, str, str]) -> MatrixAtom:
    """Return the instruction; its function is named after its shape, as in ``mma_m16n8k4``."""
    m, n, k = map(int, re.findall(r"[mnk](\d+)", function))
    return atom_of_words(function, feature, (m, n, k), dtypes)


def _largest_first(atoms: list[MatrixAtom]) -> tuple[MatrixAtom, ...]:
    return tuple(sorted(atoms, key=lambda atom: -atom.m * atom.n * atom.k))
