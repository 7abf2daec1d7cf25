"""Maps of tensors are fetched when a block begins, ahead of the copies that need them."""

from __future__ import annotations

from tile_core.ir.build_expr import binary
from tile_core.ir.device import device
from tile_core.ir.device_calls import PREFIX
from tile_core.ir.expr import BinaryOp, Call, Var
from tile_core.ir.node import nodes_of
from tile_core.ir.stmt import Evaluate, If, Seq, Stmt
from tile_core.machine import SimtMachine


def prefetch_tensor_maps(stmt: Stmt, thread: Var, machine: SimtMachine) -> Stmt:
    """Return `stmt` with a fetch of each map that it uses in front.

    Before   if tid == 0: mbarrier_init(…);  sync();  … tensor_load(A_s, A_map, …)
    After    if tid == 0: tensor_map_prefetch(A_map);  if tid == 0: mbarrier_init(…);  sync();  …

    A map is 128 bytes in global memory, which the copy engine reads before its first copy; that
    would otherwise wait for it. Source: PTX ISA, "prefetch.tensormap".
    """
    if not machine.has("copy_engine"):
        return stmt
    calls = (n for n in nodes_of(stmt, Call) if n.function.startswith(_COPIES))
    variables = (a for call in calls for a in call.args if isinstance(a, Var))
    maps = dict.fromkeys(a for a in variables if a.dtype.is_handle)
    if not maps:
        return stmt
    fetched = Seq(tuple(Evaluate(device("tensor_map_prefetch", handle)) for handle in maps))
    return Seq((If(binary(BinaryOp.EQ, thread, 0), fetched), stmt))


_COPIES = (f"{PREFIX}tensor_load", f"{PREFIX}tensor_store", f"{PREFIX}tensor_reduce")
