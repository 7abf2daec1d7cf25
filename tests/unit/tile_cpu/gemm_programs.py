"""Whole functions around the kernel's matrix products, and how to run and check them."""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np
import torch

from support.guarded import IN_ITS_OWN_PROCESS, SIDES, guarded
from tile_cpu.cpu_machine import CpuMachine
from tile_cpu.gemm.macrokernel import emit_blocked_gemm, plan_gemm
from tile_cpu.gemm.operands import Extent, StoreTo, start_from
from tile_cpu.machine import host_machine
from tile_cpu.tir.build import bind, i32, loop, parameter, seq
from tile_cpu.tir.nodes import ForKind, PrimFunc, Var, tirx
from tile_cpu.toolchain import compile_module
from tile_cpu.vectors import Matrix, as_expr, ceil_div

POISON = 64


@dataclass(frozen=True)
class Case:
    """One product: sizes, block, element types of A, B and C, and how it is called."""

    m: int
    n: int
    k: int
    block: tuple[int, int] = (32, 64)
    dtypes: tuple[str, str, str] = ("float32", "float32", "float32")
    trans_a: bool = False
    trans_b: bool = False
    dynamic: bool = False
    accumulate: bool = False


def program(case: Case, machine: CpuMachine | None = None):
    """Return the PrimFunc ``C = [C +] op(A) op(B)``, one task for each block."""
    machine = machine or host_machine()
    m, n, k = (Var(x, "int32") for x in "mnk") if case.dynamic else (case.m, case.n, case.k)
    bm, bn = case.block
    depth = k if case.dynamic else stored_depth(case)
    a = parameter([depth, m] if case.trans_a else [m, depth], case.dtypes[0], "A")
    b = parameter([n, depth] if case.trans_b else [depth, n], case.dtypes[1], "B")
    c = parameter([m, n], case.dtypes[2], "C")
    spec = plan_gemm(machine, *case.dtypes, bm, bn, transposed_b=case.trans_b)
    across, down = ceil_div(n, bn), ceil_div(m, bm)

    def block(task):
        m0, s0 = bind("m0", tirx.floordiv(task, as_expr(across)) * bm)
        n0, s1 = bind("n0", tirx.floormod(task, as_expr(across)) * bn)
        statements, valid = [s0, s1], {}
        for name, size, unit, start in (("m_valid", m, bm, m0), ("n_valid", n, bn, n0)):
            if case.dynamic or size % unit:
                valid[name], bound = bind(name, tirx.Min(as_expr(size) - start, i32(unit)))
                statements.append(bound)
        rows = Matrix.of(a, 0, m0) if case.trans_a else Matrix.of(a, m0, 0)
        columns = Matrix.of(b, n0, 0) if case.trans_b else Matrix.of(b, 0, n0)
        result = Matrix.of(c, m0, n0)
        body = emit_blocked_gemm(
            spec,
            rows,
            columns,
            Extent(bm, bn, 0, **valid),
            k_extent=k,
            finish=StoreTo(result),
            start=start_from(result, spec.kernel) if case.accumulate else None,
            transposed_a=case.trans_a,
            transposed_b=case.trans_b,
        )
        return seq(statements, body)

    tasks = across * down if isinstance(across, int) else as_expr(across) * as_expr(down)
    return PrimFunc([a, b, c], loop(tasks, block, kind=ForKind.PARALLEL, name="task"))


def stored_depth(case: Case) -> int:
    """Return the k of the tensors: NumPy and TVM disagree about strides of empty ones."""
    return max(case.k, 1)


def numpy_dtype(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name, None) or name)


def integers(rng: np.random.Generator, shape: tuple[int, int], dtype: str) -> np.ndarray:
    """Return whole numbers that `dtype` holds exactly: all of an 8-bit type, else small ones."""
    low, high = {"int8": (-128, 128), "uint8": (0, 256)}.get(dtype, (-3, 4))
    return rng.integers(low, high, shape).astype(numpy_dtype(dtype))


def as_argument(array: np.ndarray) -> object:
    """Return what DLPack can carry: NumPy has no word for bfloat16 and 8-bit floats."""
    if array.dtype.isbuiltin == 1:
        return array
    raw = torch.from_numpy(array.view(f"u{array.dtype.itemsize}"))
    return raw.view(getattr(torch, array.dtype.name))


def check(case: Case, machine: CpuMachine | None = None) -> None:
    """Run `case` on integers and compare exactly; nothing beside the tensors may be touched."""
    IN_ITS_OWN_PROCESS.call(_check, case, machine)


def _check(case: Case, machine: CpuMachine | None) -> None:
    rng = np.random.default_rng(case.m * 7919 + case.n * 31 + case.k)
    k = stored_depth(case)
    a = integers(rng, (k, case.m) if case.trans_a else (case.m, k), case.dtypes[0])
    b = integers(rng, (case.n, k) if case.trans_b else (k, case.n), case.dtypes[1])
    dtype = numpy_dtype(case.dtypes[2])
    wide = np.int64 if dtype.kind in "iu" else np.float64
    left, right = (a.T if case.trans_a else a), (b.T if case.trans_b else b)
    left, right = left[:, : case.k].astype(wide), right[: case.k].astype(wide)
    expected = left @ right + (POISON if case.accumulate else 0)
    entry = compile_module(program(case, machine), machine).entry()
    for side in SIDES:
        c = np.full((case.m, case.n), POISON).astype(dtype)
        with guarded((a, b, c), side) as lent:
            entry(*(as_argument(array) for array in lent))
        np.testing.assert_array_equal(c.astype(wide), expected.astype(dtype).astype(wide))
