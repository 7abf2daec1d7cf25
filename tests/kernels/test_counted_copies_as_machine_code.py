"""Counted copies as machine code: which loops compilers make of them, and what those compute."""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from support.counted_kernels import integers, poison, product
from support.toolchain import amd_compiler_for
from tile_core.errors import MissingWait
from tile_hip.assembly import AssemblyCode, Counts, counts_of, kernels_of, unguarded_m0
from tile_sim.gfx9 import run

ARCHITECTURES = ("gfx90a", "gfx942")
BLOCK = (128, 128, 32)
WAIT = re.compile(r"s_waitcnt vmcnt\((\d+)\)$", re.MULTILINE)


@cache
def assembly(arch: str, k: int | None, stages: int, rows: int = 256, **config: Any) -> str:
    """Return the assembly of a product of rows x 128 x k; of any sizes where `k` is None."""
    amd_compiler_for(arch)
    sizes: tuple[Any, ...] = (rows, 128, k)
    if k is None:
        sizes = T.dynamic("m"), T.dynamic("n"), T.dynamic("k") * 2
    kernel = product(*sizes, stages, "float16", block=BLOCK, threads=256)
    configs = {name.replace("_", ".", 1): value for name, value in config.items()}
    made = tile.compile(kernel, target=f"hip:{arch}", pass_configs=configs)
    return made.artifact.asm()


def code_of(text: str) -> AssemblyCode:
    return kernels_of(text)["product"]


def execute(text: str, m: int, n: int, k: int, *sizes: int, seed: int | None = None) -> None:
    """Run the assembly and check what it computes."""
    a, b, c = integers(m, k), integers(n, k, seed=1), poison(m, n)
    run(
        text,
        "product",
        grid=(-(-n // BLOCK[1]), -(-m // BLOCK[0])),
        block=256,
        arguments=[a, b, c, *sizes],
        shared_bytes=65536,
        seed=seed,
    )
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32).T)


@pytest.mark.in_turn(4)
@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize(("stages", "under_way", "barriers"), [(2, 16, 2), (3, 16, 1), (4, 32, 1)])
def test_the_main_loop(arch: str, stages: int, under_way: int, barriers: int) -> None:
    text = assembly(arch, 2048, stages)
    loop = code_of(text).main_loop()
    assert counts_of(loop) == Counts(
        matrix_products=16, lds_loads=16, wide_lds_reads=8, barriers=barriers
    )
    waits = [each.operands for each in loop if each.opcode == "s_waitcnt"]
    assert [w for w in waits if "vmcnt" in w] == [f"vmcnt({under_way})"]
    assert unguarded_m0(code_of(text)) == ()
    # A copy takes its place in shared memory, M0, a pause, and the copy itself: no lane computes.
    vector = [e.opcode for e in loop if e.opcode.startswith("v_") and not e.is_matrix_product]
    assert len(vector) <= 20
    assert len(loop) <= 140


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_copies_begin_while_products_are_under_way(arch: str) -> None:
    loop = code_of(assembly(arch, 2048, 3)).main_loop()
    kinds = ["D" if e.is_lds_load else "M" for e in loop if e.is_lds_load or e.is_matrix_product]
    assert kinds.index("D") > 0
    changes = sum(a != b for a, b in pairwise(kinds))
    assert changes >= 4


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_sizes_that_calls_tell_cost_lanes_little(arch: str) -> None:
    """What is one for all lanes stays out of them; LLVM 22 asks a lane once for each copy."""
    loop = code_of(assembly(arch, None, 3)).main_loop()
    newer = amd_compiler_for(arch).name.startswith("zig")
    assert loop.count("v_readfirstlane") <= (counts_of(loop).lds_loads if newer else 4)
    assert counts_of(loop).full_waits == 0


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_copies_through_registers_run_a_round_ahead(arch: str) -> None:
    loop = code_of(assembly(arch, 2048, 3, hip_lds_load=False)).main_loop()
    assert loop.count("global_load_dwordx4") + loop.count("buffer_load_dwordx4") == 4
    assert loop.count("ds_write_b128") == 4
    assert counts_of(loop).barriers == 1
    names = [each.opcode for each in loop]
    first_product = next(i for i, name in enumerate(names) if "mfma" in name)
    loads = [i for i, name in enumerate(names) if name.endswith("load_dwordx4")]
    assert max(loads) < first_product  # this round's products hide the next round's loads


@pytest.mark.in_turn(11)
@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("stages", [2, 3, 4])
@pytest.mark.parametrize("k", [32, 96, 160])
def test_what_it_computes(arch: str, stages: int, k: int) -> None:
    execute(assembly(arch, k, stages, 128), 128, 128, k)


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("k", [2, 64, 134])
def test_what_it_computes_of_sizes_that_calls_tell(arch: str, k: int) -> None:
    execute(assembly(arch, None, 3), 130, 60, k, k // 2, 130, 60, seed=k)


@pytest.mark.parametrize("stages", [2, 3])
@pytest.mark.parametrize("which", range(3))
def test_one_copy_more_under_way_is_found(stages: int, which: int) -> None:
    text = assembly("gfx942", 160, stages, 128)
    waits = list(WAIT.finditer(text))
    at = waits[which % len(waits)]
    changed = f"{text[: at.start(1)]}{int(at[1]) + 1}{text[at.end(1) :]}"
    with pytest.raises(MissingWait):
        execute(changed, 128, 128, 160)
