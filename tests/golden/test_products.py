"""Which instructions multiply which matrices on each generation, and why others do not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from support.products import Product
from tile_core.errors import TileError
from tile_core.ir.node import walk
from tile_core.ops.gemm import Gemm
from tile_core.ops.rule import Rule, select
from tile_core.target import Target
from tile_cuda import machine as nvidia
from tile_cuda.rules.gemm import gemm_rules as of_nvidia
from tile_cuda.rules.gemm import tf32_rules
from tile_hip import machine as amd
from tile_hip.rules.gemm import gemm_rules as of_amd

Golden = Callable[..., None]

HALF = Product("", 128, 128, 64)
TYPES = (
    ("float16", "", "float32"), ("float16", "", "float16"), ("bfloat16", "", "float32"),
    ("float32", "", "float32"), ("tfloat32", "", "float32"), ("float64", "", "float64"),
    ("int8", "", "int32"), ("uint8", "int8", "int32"), ("int4", "", "int32"),
    ("float8_e4m3fn", "float8_e5m2", "float32"), ("float8_e4m3fnuz", "", "float32"),
    ("float16", "bfloat16", "float32"), ("int8", "", "float32"),
)  # fmt: skip
SHAPES = (
    (64, 64, 64), (64, 96, 64), (64, 256, 64), (64, 264, 64), (48, 64, 64), (16, 8, 16),
    (16, 8, 8), (8, 8, 16), (128, 16, 16), (128, 8, 64), (128, 24, 64), (128, 256, 64),
    (128, 272, 64), (256, 128, 64), (128, 128, 16), (128, 128, 24), (128, 128, 8), (192, 64, 32),
    (32, 32, 4), (4, 64, 64), (17, 64, 64),
)  # fmt: skip
VARIANTS = [
    *(replace(HALF, factor=a, second=b, total=c) for a, b, c in TYPES),
    *(replace(HALF, m=m, n=n, k=k) for m, n, k in SHAPES),
    *(replace(HALF, threads=threads) for threads in (32, 64, 96, 256, 384, 1024)),
    *(replace(HALF, transposes=(a, b)) for a, b in ((True, False), (False, True), (True, True))),
    *(replace(HALF, factor=t, transposes=(True, False)) for t in ("int8", "float8_e4m3fn")),
    replace(HALF, factor="tfloat32", transposes=(False, True)),
    replace(HALF, scopes=("fragment", "shared")),
    replace(HALF, scopes=("shared", "fragment")),
    replace(HALF, scopes=("fragment", "fragment"), k_pack=2),
    replace(HALF, scopes=("fragment", "shared"), transposes=(True, False)),
]


def told(rules: tuple[Rule[Any], ...], kind: str, arch: str) -> Iterator[str]:
    """Yield each product with the rule that is chosen, and what the others say against it."""
    for variant in VARIANTS:
        (op,) = (n for n in walk(replace(variant, arch=arch).kernel()) if isinstance(n, Gemm))
        target = Target(kind, arch)
        try:
            chosen = select(op, target, rules).name
        except TileError as error:
            chosen = str(error.message)
        yield f"{replace(variant, arch=arch)}: {chosen}"
        for rule in rules:
            why = rule.rejects(op, target) if isinstance(op, rule.op) else None
            if why is not None and why != "no operand is float32":
                yield f"  not {rule.name}: {why}"


@pytest.mark.parametrize("arch", ["sm_70", "sm_75", "sm_80", "sm_89", "sm_90a", "sm_100a"])
def test_of_nvidia(arch: str, golden: Golden) -> None:
    machine = nvidia.machine(arch)
    golden("\n".join(told((*of_nvidia(machine), *tf32_rules(machine)), "cuda", arch)))


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950"])
def test_of_amd(arch: str, golden: Golden) -> None:
    golden("\n".join(told(of_amd(amd.machine(arch)), "hip", arch)))
