"""Maps of tensors are fetched before anything else, once each."""

from __future__ import annotations

from support.device_programs import TID, at, do, function, loop, program, scalar, shared
from tile_core.codegen import print_program
from tile_core.dtypes import dtype_of
from tile_core.ir.expr import Var
from tile_core.ir.stmt import Seq, Stmt
from tile_core.machine import SimtMachine
from tile_core.simt.elect_issuer import elect_issuers
from tile_core.simt.prefetch_tensor_maps import prefetch_tensor_maps

HOPPER = SimtMachine(
    name="sm_90a", family="cuda", shared_bytes=1, features=frozenset({"elect", "copy_engine"})
)
OLDER = SimtMachine(name="sm_80", family="cuda", shared_bytes=1, features=frozenset())
TILE, BARS = shared("S", 1024, "float16"), shared("full", 2, "uint64")
READ, WRITTEN, SUMMED = (Var(f"{name}_map", dtype_of("handle")) for name in "ABC")
K, N = scalar("k"), scalar("n")
LOAD = do("tensor_load", 1, at(TILE, 0, "w"), READ, at(BARS, 0, "rw"), K * 64)


def lines(*body: Stmt, machine: SimtMachine = HOPPER) -> list[str]:
    made = elect_issuers(prefetch_tensor_maps(Seq(body), TID, machine), TID, machine)
    text = print_program(program(function((READ, WRITTEN, SUMMED, N), made))).text
    return [line.strip() for line in text.split("\n")]


def test_each_map_is_fetched_once_by_one_thread() -> None:
    found = lines(
        loop(K, N, Seq((LOAD, LOAD))),
        do("tensor_store", 1, WRITTEN, at(TILE), N),
        do("tensor_reduce_add", 1, SUMMED, at(TILE), N),
    )
    first = found.index("tile::tma_prefetch(A_map);")
    assert found[first - 1 : first + 4] == [
        "if (tid < 32 && tile::elect()) {",
        "tile::tma_prefetch(A_map);",
        "tile::tma_prefetch(B_map);",
        "tile::tma_prefetch(C_map);",
        "}",
    ]
    assert sum("tma_prefetch" in line for line in found) == 3
    assert first < min(k for k, line in enumerate(found) if "tma_load" in line)


def test_contiguous_copies_have_no_map() -> None:
    stmt = Seq((do("bulk_store", at(TILE), at(TILE), 64),))
    assert prefetch_tensor_maps(stmt, TID, HOPPER) is stmt


def test_machines_without_an_engine_have_no_maps() -> None:
    stmt = Seq((LOAD,))
    assert prefetch_tensor_maps(stmt, TID, OLDER) is stmt
