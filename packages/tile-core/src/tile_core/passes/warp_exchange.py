"""Exchanges between the threads of a warp, or of a block, through arrays in memory."""

from __future__ import annotations

from collections.abc import Callable

from tile_core.dtypes import dtype_of
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.build_expr import binary, cast, const, maximum, minimum, select, truth
from tile_core.ir.expr import BinaryOp, Call, Expr, Load, Var
from tile_core.ir.stmt import Alloc, For, Seq, Stmt, Store
from tile_core.passes.thread_loops import ThreadLoops

WARP = 32
INT32, UINT32 = dtype_of("int32"), dtype_of("uint32")
_COMBINE: dict[str, Callable[[Expr, Expr], Expr]] = {
    "warp_reduce_sum": lambda a, b: a + b,
    "warp_reduce_max": maximum,
    "warp_reduce_min": minimum,
    "warp_reduce_bitand": lambda a, b: a & b,
    "warp_reduce_bitor": lambda a, b: a | b,
    "any_sync": lambda a, b: a | b,
    "all_sync": lambda a, b: a & b,
    "ballot_sync": lambda a, b: a | b,
    "activemask": lambda a, b: a | b,
    "match_all_sync": lambda a, b: a & b,
    "syncthreads_count": lambda a, b: a + b,
    "syncthreads_and": lambda a, b: a & b,
    "syncthreads_or": lambda a, b: a | b,
}


class Exchange:
    """One exchange: publish what each thread gives, combine, and say what each receives.

    The `call` is a shuffle, vote, match, warp reduction or block vote; `steps` receives statements.
    """

    def __init__(self, threads: ThreadLoops, call: Call, steps: list[Stmt]) -> None:
        self.threads, self.call, self.steps = threads, call, steps
        self.me = threads.index
        self.lane, self.warp = self.me % WARP, self.me // WARP

    def received(self) -> Expr:
        """Return what the current thread receives; the statements before it are in `steps`."""
        name = self.call.function
        if name.startswith("shfl_"):
            given = self.publish(self.call.args[0])
            return Load(given, (self.source(name),))
        if name == "match_any_sync":
            return self.matching()
        if name.startswith("syncthreads_"):
            given = self.publish(cast(truth(self.call.args[0]), INT32))
            first, size = self.threads.first, self.threads.size
            return self.combined(name, given, size, range(first, first + size))
        given = self.publish(self.contribution(name))
        everyone = range(self.threads.count)
        return cast(self.combined(name, given, WARP, everyone), self.call.dtype)

    def contribution(self, name: str) -> Expr:
        """Return what a thread adds to a vote, or its value in a reduction."""
        one = const(1, UINT32)
        if name == "activemask":
            bit = binary(BinaryOp.SHL, one, cast(self.lane, UINT32))
            mask = self.threads.mask
            return bit if mask is None else select(Load(mask, (self.me,)), bit, const(0, UINT32))
        value = self.call.args[0]
        if name == "ballot_sync":
            bit = binary(BinaryOp.SHL, one, cast(self.lane, UINT32))
            return select(truth(value), bit, const(0, UINT32))
        if name in ("any_sync", "all_sync"):
            return cast(truth(value), INT32)
        if name == "match_all_sync":
            given = self.publish(value)
            first = Load(given, (self.warp * WARP,))
            full = const(0xFFFFFFFF, UINT32)
            return select(binary(BinaryOp.EQ, Load(given, (self.me,)), first), full,
                          const(0, UINT32))  # fmt: skip
        return value

    def publish(self, value: Expr) -> Buffer:
        """Store what each thread gives in an array and return that."""
        given = self.threads.array("given", value)
        store = Store(given, (self.me,), value)
        # The mask of active lanes is asked of all of them; nothing else waits for a part.
        everyone = self.call.function == "activemask"
        self.steps.append(self.threads.over_threads(store, everyone=everyone))
        return given

    def source(self, name: str) -> Expr:
        """Return which thread a shuffle reads: within its group, else the thread itself."""
        by, width = (cast(a, INT32) for a in self.call.args[1:3])
        first = self.lane // width * width
        if name == "shfl_xor":
            lane = binary(BinaryOp.BITXOR, self.lane, by)
            stays = lane >= first + width
        elif name == "shfl_down":
            lane = self.lane + by
            stays = lane >= first + width
        elif name == "shfl_up":
            lane = self.lane - by
            stays = lane < first
        else:
            lane = first + by % width
            stays = lane < 0
        source = self.warp * WARP + lane
        outside = binary(BinaryOp.OR, stays, source >= self.threads.count)
        return select(outside, self.me, source)

    def combined(self, name: str, given: Buffer, group: int, threads: range) -> Expr:
        """Combine the elements of each group of threads; return the current thread's result."""
        groups = -(-len(threads) // group)
        result = Buffer("combined", (groups,), given.dtype, Scope.SHARED)
        self.threads.hoisted.append(Alloc(result))
        w, k = Var("w", INT32), Var("k", INT32)
        start = w * group + threads.start
        total = _COMBINE[name](Load(result, (w,)), Load(given, (start + k,)))
        step: Stmt = Store(result, (w,), cast(total, given.dtype))
        left = minimum(const(group), len(threads) - w * group)
        rest = For(k, const(1), left, const(1), step)
        one = Store(result, (w,), Load(given, (start,)))
        self.steps.append(For(w, const(0), const(groups), const(1), Seq((one, rest))))
        return Load(result, ((self.me - threads.start) // group,))

    def matching(self) -> Expr:
        """Return, for each thread, the lanes of its warp that give the same value."""
        given = self.publish(self.call.args[0])
        mine = self.threads.array("matching", const(0, UINT32))
        other = Var("other", INT32)
        start = self.warp * WARP
        bit = binary(BinaryOp.SHL, const(1, UINT32), cast(other, UINT32))
        same = binary(BinaryOp.EQ, Load(given, (self.me,)), Load(given, (start + other,)))
        step = Store(mine, (self.me,), Load(mine, (self.me,)) | select(same, bit,
                     const(0, UINT32)))  # fmt: skip
        last = minimum(const(WARP), self.threads.count - start)
        body = Seq(
            (Store(mine, (self.me,), const(0, UINT32)), For(other, const(0), last, const(1), step))
        )
        self.steps.append(self.threads.over_threads(body))
        return Load(mine, (self.me,))
