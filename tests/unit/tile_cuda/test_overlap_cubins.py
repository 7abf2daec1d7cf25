"""Products beside the work of their threads as machine code: nothing spills, none runs alone."""

from __future__ import annotations

import re
from functools import lru_cache

import pytest

from support.ring_kernels import Case, dequantised, scaled
from support.toolchain import need_disassembler, nvrtc_for
from tile_core.codegen import print_program
from tile_core.driver import lower
from tile_core.plugins.host import installed_plugins
from tile_cuda.disassembly import sass
from tile_cuda.machine_code import Compiled, compile_source

CASES: dict[str, Case] = {
    "weights": dequantised(64, threads=256, rows=128, columns=128, stages=4),
    "weights, odd rounds": dequantised(63, threads=256, rows=128, columns=128, stages=4),
    "weights in shared memory": dequantised(64, threads=256, rows=128, columns=128, scope="shared"),
    "weights, rounds at run time": dequantised(9, at_run_time=True),
    "scaled": scaled(65, columns=128, stages=4),
    "scaled, even rounds": scaled(64, columns=128, stages=4),
    "scaled, cleared behind": scaled(32, columns=128, stages=4, begun="behind"),
    "scaled, rounds at run time": scaled(9, at_run_time=True),
}


@lru_cache(maxsize=8)
def compiled(name: str) -> Compiled:
    nvrtc_for("sm_90a")
    lowered = lower(CASES[name].function.kernel, "cuda:sm_90a", installed_plugins())
    return compile_source(print_program(lowered.module), "sm_90a", warn=False)


@pytest.mark.in_turn(7)
@pytest.mark.parametrize("name", CASES)
def test_nothing_spills_and_no_product_runs_alone(name: str) -> None:
    made = compiled(name)
    for needs in made.resources.values():
        assert (needs.spill_stores, needs.spill_loads, needs.stack_bytes) == (0, 0, 0)
        assert needs.remarks == ()
    assert "(C75" not in made.log


def opcodes_of_loop(name: str, work: str, count: int) -> list[str]:
    """Return the opcodes of the shortest loop with products of two rounds, and so much work."""
    need_disassembler()
    lines = [
        (int(m[1], 16), re.sub(r"^@!?U?P\w+ ", "", m[2]))
        for m in re.finditer(r"/\*([0-9a-f]{4,5})\*/\s+(.*?);", sass(compiled(name).code))
    ]
    loops = []
    for at, text in lines:
        target = re.match(r"BRA\b.*0x([0-9a-f]+)", text)
        if target and int(target[1], 16) < at:
            loops.append([t.split()[0] for a, t in lines if int(target[1], 16) <= a <= at])
    around = [b for b in loops if sum("GMMA" in o for o in b) >= 8]
    return min((b for b in around if sum(o.startswith(work) for o in b) >= count), key=len)


def test_weights_are_made_while_a_product_runs() -> None:
    """Between the products of a round and the wait for them there are those of the next."""
    body = opcodes_of_loop("weights", "HADD2", 32)
    order = "".join(
        "P" if "GMMA" in o else "w" if o.startswith("WARPGROUP.DEPBAR") else
        "m" if o.startswith("HADD2") else ""
        for o in body
    )  # fmt: skip
    assert order.count("P") == 8
    assert re.fullmatch(r"m*P{4}wm+P{4}wm*", order), order
    assert len(body) <= 1.1 * 360


def test_sums_are_scaled_while_a_product_runs() -> None:
    """Most of a round's multiplications stand between the next round's products and their wait."""
    body = opcodes_of_loop("scaled", "FFMA", 64)
    order = "".join(
        "P" if "GMMA" in o else "w" if o.startswith("WARPGROUP.DEPBAR") else
        "f" if o.startswith("FFMA") else ""
        for o in body
    )  # fmt: skip
    beside = [len(part) for part in re.findall(r"P(f*)w", order)]
    assert len(beside) == 2
    assert sum(beside) >= 0.75 * order.count("f")
