"""Kernels that multiply one pair of tiles, or a pipeline of them, and how they are run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from support.kept_kernels import built
from tile_core.codegen import PrintedSource, print_program
from tile_core.compilation.results import Built
from tile_core.interp.values import Array
from tile_core.ir.build_expr import ceildiv
from tile_core.ir.stmt import Kernel
from tile_core.ops.gemm import GemmWarpPolicy
from tile_core.simt.lower import lower_kernel
from tile_core.simt.pass_contexts import KernelContext
from tile_core.simt.program import DeviceProgram
from tile_core.target import Target
from tile_core.testing import build_ir as ir
from tile_core.testing.conformance.case import logical
from tile_core.testing.oracle import numbers, poison
from tile_cuda import machine as nvidia
from tile_cuda import rules as nvidia_rules
from tile_hip import machine as amd
from tile_hip import rules as amd_rules


@dataclass(frozen=True)
class Product:
    """``C = op(A) @ op(B)``, all of it in one block of `threads` threads.

    Parameters
    ----------
    scopes
        Where the factors are when they are multiplied; fragments are filled from shared tiles.
    """

    arch: str
    m: int
    n: int
    k: int
    factor: str = "float16"
    total: str = "float32"
    second: str = ""
    transposes: tuple[bool, bool] = (False, False)
    scopes: tuple[str, str] = ("shared", "shared")
    threads: int = 128
    policy: GemmWarpPolicy = GemmWarpPolicy.Square
    clear: bool = False
    steps: int = 1  # above 1: K is gone through in so many pipelined rounds
    k_pack: int = 1

    def __str__(self) -> str:
        letters = "".join("NT"[t] for t in self.transposes)
        types = "*".join(dict.fromkeys((self.factor, self.second or self.factor)))
        scopes = "".join(s[0] for s in self.scopes)
        shape = f"{self.m}x{self.n}x{self.k}"
        return f"{self.arch}/{shape}/{types}+{self.total}/{letters}/{scopes}/{self.threads}"

    @property
    def shapes(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Shapes of the factors as tensors."""
        a, b = (self.m, self.k), (self.k, self.n)
        first, second = self.transposes
        return (a[::-1] if first else a), (b[::-1] if second else b)

    @property
    def types(self) -> tuple[str, str]:
        """Element types of the factors."""
        return self.factor, self.second or self.factor

    def kernel(self) -> Kernel:
        """Return the kernel."""
        tensors = [
            ir.tensor(n, s, t) for n, s, t in zip("AB", self.shapes, self.types, strict=True)
        ]
        c = ir.tensor("C", (self.m, self.n), self.total)
        acc = ir.fragment("C_local", (self.m, self.n), self.total)
        step = self.k // self.steps
        cut = [
            tuple(step if k == along else extent for k, extent in enumerate(shape))
            for shape, along in zip(self.shapes, self._k_axes(), strict=True)
        ]
        tiles = [
            ir.shared(f"{n}_shared", s, t) for n, s, t in zip("AB", cut, self.types, strict=True)
        ]
        held = [
            ir.fragment(f"{n}_local", s, t) for n, s, t in zip("AB", cut, self.types, strict=True)
        ]
        used = [
            tile if scope == "shared" else local
            for tile, local, scope in zip(tiles, held, self.scopes, strict=True)
        ]

        def round_of(ko: Any) -> list[Any]:
            loads = [
                ir.copy(ir.region(t, [ko * step if d == k else 0 for d in (0, 1)], s), tile)
                for t, s, tile, k in zip(tensors, cut, tiles, self._k_axes(), strict=True)
            ]
            moves = [ir.copy(t, u) for t, u in zip(tiles, used, strict=True) if u is not t]
            product = ir.gemm(
                used[0], used[1], acc, transpose_a=self.transposes[0],
                transpose_b=self.transposes[1], policy=self.policy, clear=self.clear,
                k_pack=self.k_pack,
            )  # fmt: skip
            return [*loads, *moves, product]

        body = round_of(0) if self.steps == 1 else [ir.pipelined(self.steps, round_of)]
        before = [ir.alloc(*tiles, *(u for u in used if u not in tiles), acc)]
        before += [] if self.clear else [ir.fill(acc, 0)]
        return ir.kernel(
            [*tensors, c], 1, lambda bx: [*before, *body, ir.copy(acc, c)], threads=self.threads
        )

    def _k_axes(self) -> tuple[int, int]:
        return (0 if self.transposes[0] else 1), (1 if self.transposes[1] else 0)

    def arguments(self, seed: int = 0) -> list[Array]:
        """Return small integers for the factors, and a poisoned result."""
        rng = np.random.default_rng(seed)
        factors = [numbers(rng, s, t) for s, t in zip(self.shapes, self.types, strict=True)]
        return [*factors, poison((self.m, self.n), self.total)]

    def expected(self, a: Array, b: Array) -> Array:
        """Return the exact product."""
        x, y = (
            logical(v, kind, shape)
            for v, kind, shape in zip((a, b), self.types, self.shapes, strict=True)
        )
        s, t = self.transposes
        wide = np.float64 if x.dtype.kind not in "iu" else np.int64
        result: Array = (x.T if s else x).astype(wide) @ (y.T if t else y).astype(wide)
        return result

    def program(self) -> DeviceProgram:
        """Return what the kernel is lowered to."""
        return lowered(self.kernel(), self.arch)

    def printed(self) -> PrintedSource:
        """Return the emitted text."""
        return print_program(self.program())


def lowered(kernel: Kernel, arch: str) -> DeviceProgram:
    """Return `kernel` as programs of single threads of an NVIDIA or AMD architecture."""
    target = target_of(arch)
    machines, rules = (amd, amd_rules) if target.kind == "hip" else (nvidia, nvidia_rules)
    machine = machines.machine(arch)
    every = rules.all_rules(machine)
    context = KernelContext(target=target, machine=machine, rules=every)
    return lower_kernel(kernel, context)


def target_of(arch: str) -> Target:
    """Return the target whose architecture is called `arch`."""
    return Target("hip" if arch.startswith("gfx") else "cuda", arch)


def emulated(product: Product) -> Built:
    """Return the kernel of a product, compiled for the emulator."""
    return built(product.kernel(), f"{target_of(product.arch)}@sim")


def check(product: Product) -> None:
    """Run `product` on the emulator with all checks, and compare with the exact result."""
    a, b, c = product.arguments()
    emulated(product).executable(a, b, c)
    got = logical(c, product.total, (product.m, product.n))
    np.testing.assert_array_equal(got.astype(np.float64), product.expected(a, b))
    assert ceildiv(product.k, product.steps) * product.steps == product.k
