"""Sums and first factors of products in tensor memory: what is there, and when threads see it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from tile_core.arith.constraints import ConstraintSet
from tile_core.dtypes import dtype_of
from tile_core.ir.buffer import Buffer, Region, Scope, whole
from tile_core.ir.build_expr import as_expr
from tile_core.ir.effects import Mode, accesses
from tile_core.ir.expr import Const
from tile_core.ir.node import Node, nodes_of, rewrite, substitute
from tile_core.ir.stmt import Alloc, If, Kernel, Launch, OnThreads, Seq, Stmt, Store
from tile_core.ir.visitor import map_statements
from tile_core.machine import SimtMachine
from tile_core.ops.bulk_copy import FenceAsync
from tile_core.ops.control import Barrier
from tile_core.ops.copy import Copy, Fill
from tile_core.ops.gemm import Gemm
from tile_core.ops.mbarrier import BarrierInit
from tile_core.ops.operator import ControlOperator
from tile_core.records import dataclass, replace
from tile_core.remarks import remark

LANES, COLUMNS, LEAST = 128, 512, 32
"""Rows and columns of tensor memory; columns come in powers of two, so many at least."""

HALF = 64
"""Rows of the smallest product. The right half of its sums is in the rows that are left."""

IN_FLIGHT = 4
"""Barriers that products arrive at in turn."""

BESIDE_TILES = 2048
"""Bytes of shared memory for barriers, and between tiles."""

GROUP = 128
"""Threads that together reach all rows."""


@dataclass(frozen=True, slots=True, eq=False)
class TensorMemory(ControlOperator):
    """Take columns of tensor memory, for what `held` fragments have, one behind the other.

    Parameters
    ----------
    place
        An element of shared memory that tells where they begin; `base`, a variable, holds it then.
    barriers
        Those at which products arrive in turn; the variable `issued` counts them.
    columns
        How many are taken: a power of two. Those of scales follow what fragments have.
    of_pair
        Both blocks of a pair take as many: see `pair_blocks`.
    """

    mnemonic: ClassVar[str] = "tensor_memory"
    place: Buffer
    base: Buffer
    barriers: Buffer
    issued: Buffer
    held: tuple[Buffer, ...]
    columns: int
    of_pair: bool = False

    @property
    def in_flight(self) -> int:
        """How many barriers there are for products."""
        return (self.barriers.static_shape or (IN_FLIGHT,))[0]

    def first_column(self, fragment: Buffer) -> int:
        """Return where the columns of a fragment begin."""
        return sum(map(columns_of, self.held[: self.held.index(fragment)]))

    @property
    def first_of_scales(self) -> int:
        """Where the columns of scales begin."""
        return sum(map(columns_of, self.held))


@dataclass(frozen=True, slots=True, eq=False)
class FreeTensorMemory(ControlOperator):
    """Give back what `TensorMemory` took, once all threads have met."""

    mnemonic: ClassVar[str] = "free_tensor_memory"
    base: Buffer
    columns: int
    of_pair: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class LoadSums(ControlOperator):
    """Bring sums from tensor memory into the registers of a fragment."""

    mnemonic: ClassVar[str] = "load_sums"
    sums: Region

    def writes(self) -> tuple[Region, ...]:
        """Return the fragment."""
        return (self.sums,)


@dataclass(frozen=True, slots=True, eq=False)
class StoreSums(ControlOperator):
    """Bring what a fragment holds into tensor memory."""

    mnemonic: ClassVar[str] = "store_sums"
    sums: Region

    def reads(self) -> tuple[Region, ...]:
        """Return the fragment."""
        return (self.sums,)


def columns_of(fragment: Buffer) -> int:
    """Return the columns that a fragment has: of 32 bits, those of 64 rows half as many."""
    rows, columns = fragment.static_shape or (0, 0)
    return rows * columns * fragment.dtype.bits // (LANES * 32)


SCALED = "accumulator_memory_scaled"
"""The feature of machines whose products there multiply by scales of groups along K."""

SCALE_WORD, SCALE_COLUMNS = 4, 4
"""Scales of a row in a column; columns of those of 128 rows."""

_SCALE_WORDS = 4
"""For so many words of a round there are columns; those of others take turns."""


def groups_of_step(op: Gemm) -> int:
    """Return how many groups along K an instruction takes: of 32 elements, or of 16."""
    if not op.nibbles:
        return 1
    return 2 if op.scales[0].buffer.dtype == "float8_e8m0fnu" else 4


def step_of(op: Gemm) -> int:
    """Return how many elements along K an instruction with scales takes."""
    return 64 if op.nibbles else 32


def scale_words(op: Gemm) -> int:
    """Return how many words of scales have columns of their own in a round."""
    groups = op.mnk[2] // STEP_BYTES * groups_of_step(op)
    return max(1, min(groups // SCALE_WORD, _SCALE_WORDS))


def scale_blocks(op: Gemm) -> int:
    """Return how many blocks of 128 rows have scales for one instruction: of A, and those of B."""
    return 1 + op.mnk[1] // LANES


def scales_refusal(op: Gemm, machine: SimtMachine) -> str | None:
    """Return why no product in tensor memory multiplies `op` by its scales; None if one may."""
    m, n, k = op.mnk
    types = {str(r.buffer.dtype) for r in (op.a, op.b)}
    kinds = {str(scales.buffer.dtype) for scales in op.scales}
    is_pair = op.nibbles and types == {"uint8"}
    allowed = [{"float8_e8m0fnu"}, {"float8_e4m3fn"}][: 1 + is_pair]
    if not machine.has(SCALED) or not (is_pair or types <= set(_FLOAT8)) or kinds not in allowed:
        told = " and ".join(sorted(types | kinds))
        return f"{machine.name} has no products in tensor memory of {told}"
    group = step_of(op) // groups_of_step(op)
    if {op.group_a, op.group_b} != {group}:
        return f"{op.group_a} and {op.group_b} elements share a scale, not {group}"
    if m % LANES or n % LANES or op.a.buffer.scope is not Scope.SHARED:
        return f"M is {m} and N is {n}: multiples of {LANES} of tiles in shared memory have scales"
    groups = k // STEP_BYTES * groups_of_step(op)
    apart = group * min(groups, SCALE_WORD)
    first = 0 if op.first_k is None else ConstraintSet().multiple_of(op.first_k)
    if not groups or (groups not in (1, 2) and groups % SCALE_WORD) or first % apart:
        depth = k * 2 if op.nibbles else k
        return f"K is {depth}, from multiples of {first} on: four groups share a word"
    for scales in op.scales:
        shape, extents = scales.buffer.static_shape or (), scales.static_extents or ()
        if scales.buffer.scope is not Scope.SHARED or shape[-2:] != extents[-2:]:
            return f"scales are a part of {scales.buffer.name!r}, or not in shared memory"
        if shape[-1] % SCALE_WORD:
            return f"rows of {scales.buffer.name!r} have {shape[-1]} scales, not 4, 8 or 12"
    return None


def scale_columns(products: Sequence[Gemm]) -> int:
    """Return how many columns scales have: those of the product that has most."""
    scaled = (op for op in products if op.scales)
    return max((SCALE_COLUMNS * scale_blocks(op) * scale_words(op) for op in scaled), default=0)


STEP_BYTES = 32
"""Along K, of one instruction."""

_FLOAT8, _INT8 = ("float8_e4m3fn", "float8_e5m2"), ("int8", "uint8")
_FLOATS = {
    *((t, t, "float32") for t in ("float16", "bfloat16", "tfloat32")),
    *((a, b, "float32") for a in _FLOAT8 for b in _FLOAT8),
}
"""Element types of both factors and of sums.

Products of float32 would be rounded: users ask for that.
"""
_INTEGERS = {(a, b, "int32") for a in _INT8 for b in _INT8}


def refusal(op: Gemm, machine: SimtMachine) -> str | None:
    """Return why no product in tensor memory of `machine` computes `op`; None if it may."""
    a, b, c = (r.buffer for r in (op.a, op.b, op.c))
    if op.scales and (why := scales_refusal(op, machine)) is not None:
        return why
    types = tuple(str(buffer.dtype) for buffer in (a, b, c))
    if op.scales and types == ("uint8", "uint8", "float32"):  # pairs of 4-bit floats
        types = ("float8_e4m3fn", "float8_e4m3fn", "float32")
    integers = _INTEGERS if machine.has("accumulator_memory_int8") else set()
    if types not in _FLOATS | integers:
        return f"no product of {types[0]} by {types[1]} into {types[2]} has sums in tensor memory"
    if c.scope is not Scope.FRAGMENT or c.static_shape != op.c.static_extents:
        return f"C is not a whole fragment, but a part of {c.name!r}"
    m, n, k = op.mnk
    if len(c.static_shape or ()) != 2 or (m % LANES and m != HALF):
        return f"M is {m}, neither {HALF} nor a multiple of {LANES}, the rows of tensor memory"
    if m == HALF and n not in (64, 128, 256):
        return f"N is {n}, and products of {HALF} rows have 64, 128 or 256"
    if n % 16 or n > 256:
        return f"N is {n}, no multiple of 16 up to 256"
    step = STEP_BYTES * 8 // a.dtype.bits
    if k % step:
        return f"K is {k}, no multiple of {step}"
    if a.dtype.bits == 32 and (op.transpose_a or not op.transpose_b):
        return f"rows of both factors must be along K where they are {types[0]}"
    if not isinstance(op.clear, Const):
        return "values decide whether previous sums are dropped"
    if b.scope is not Scope.SHARED:
        return f"B, {b.name!r}, is not in shared memory"
    if a.scope is Scope.SHARED or (
        a.scope is Scope.FRAGMENT and not op.transpose_a and a.static_shape == op.a.static_extents
    ):
        return None
    return f"A, {a.name!r}, is neither in shared memory nor a whole fragment"


def place_sums(kernel: Kernel, machine: SimtMachine) -> Kernel:
    """Return `kernel` with sums of products in tensor memory while nothing else touches them.

    Before   fill C, 0;  for k: … gemm A_s, B_s, C …;  copy C, D
    After    tensor_memory C;  fill C, 0;  store_sums C
             for k: … barrier;  gemm A_s, B_s, C …
             load_sums C;  copy C, D;  barrier;  free_tensor_memory

    First factors in registers go to tensor memory before their products, or to tiles in shared
    memory.
    Tensor memory has what products shall add to from `store_sums` on, and after them; registers
    from `load_sums` to the next product. A barrier before each product lets it begin when all
    threads have come so far.
    """
    if not machine.has("accumulator_memory"):
        return kernel

    def rule(node: Node) -> Node:
        return _placed(node, machine) if isinstance(node, Launch) else node

    return rewrite(kernel, rule, (Launch,))


def _placed(launch: Launch, machine: SimtMachine) -> Launch:
    groups = _in_groups(launch)
    taken: list[Buffer] = []
    beside = scale_columns(nodes_of(launch.body, Gemm))
    for buffer in _accumulators(launch, machine, groups):
        if sum(map(columns_of, (*taken, buffer))) + beside <= COLUMNS:
            taken.append(buffer)
        else:
            told = f"{buffer.name!r} finds no room in {COLUMNS} columns of tensor memory"
            remark("missed", "place_sums", told, buffer.span)
    scaled = {op.c.buffer for op in nodes_of(launch.body, Gemm) if op.scales}
    if not taken or not scaled <= set(taken):
        return launch
    products = [op for op in nodes_of(launch.body, Gemm) if op.c.buffer in taken]
    held, elsewhere = list(taken), list[Buffer]()
    for factor in _factors_in_registers(products):
        has_room = sum(map(columns_of, (*held, factor))) + beside <= COLUMNS
        (held if has_room and _may_be_held(factor, products, groups) else elsewhere).append(factor)
    shared = {n.buffer for n in nodes_of(launch.body, Alloc) if n.buffer.scope is Scope.SHARED}
    need = sum(b.nbytes or 0 for b in (*shared, *elsewhere)) + BESIDE_TILES
    room = machine.shared_bytes
    if elsewhere and need > room:
        told = f"factors in registers lack room in shared memory: {need} bytes of {room}"
        remark("missed", "place_sums", told, launch.span)
        return launch
    columns = max(LEAST, 1 << (sum(map(columns_of, held)) + beside - 1).bit_length())
    uint64, int32 = dtype_of("uint64"), dtype_of("int32")
    place = Buffer("tensor_memory", (1,), uint64, Scope.BARRIER)
    barriers = Buffer("products", (IN_FLIGHT,), uint64, Scope.BARRIER)
    base = Buffer("sums", (1,), int32, Scope.VAR)
    issued = Buffer("issued", (1,), int32, Scope.VAR)
    found = TensorMemory(place, base, barriers, issued, tuple(held), columns)
    tiles = {f: replace(f, name=f"{f.name}_shared", scope=Scope.SHARED) for f in elsewhere}
    body = substitute(launch.body, _moved_factors(products, tiles))
    for buffer in taken:
        body = _Residence(launch, buffer).visit(body, True, False)[0]
    told = f"{columns} of {COLUMNS} columns of tensor memory have sums of {_names(taken)}"
    if held != taken:
        told += f", and the factor {_names(held[len(taken) :])}"
    told += ", and scales" if beside else ""
    remark("passed", "place_sums", told, launch.span)
    made = (
        *map(Alloc, (place, barriers, base, issued, *tiles.values())),
        BarrierInit(barriers, (1,) * IN_FLIGHT),
        Store(issued, (as_expr(0),), as_expr(0)),
        found,
        body,
        Barrier(),
        FreeTensorMemory(base, columns),
    )
    return replace(launch, body=Seq(made))


def _names(buffers: Sequence[Buffer]) -> str:
    return ", ".join(repr(b.name) for b in buffers)


def _factors_in_registers(products: Sequence[Gemm]) -> list[Buffer]:
    """Return first factors that have to move to where products read them."""
    first = (op.a.buffer for op in products)
    return list(dict.fromkeys(b for b in first if b.scope is Scope.FRAGMENT))


def _may_be_held(factor: Buffer, products: Sequence[Gemm], groups: dict[Gemm, int]) -> bool:
    """Whether tensor memory can have a first factor, of which each thread stores whole columns."""
    own = [op for op in products if op.a.buffer is factor]
    rows, _ = factor.static_shape or (0, 0)
    alike = all(op.b.buffer.dtype == factor.dtype for op in own)
    return alike and rows % LANES == 0 and _have_whole_columns(factor, {groups[op] for op in own})


def _moved_factors(products: Sequence[Gemm], tiles: Mapping[Buffer, Buffer]) -> dict[Node, Node]:
    """Return products behind what brings their first factors to tensor or shared memory."""
    moved: dict[Node, Node] = {}
    for op in products:
        if op.a.buffer in tiles:
            there = replace(op.a, buffer=tiles[op.a.buffer])
            copy = Copy(op.a, there, span=op.span)
            moved[op] = Seq((copy, FenceAsync(), replace(op, a=there)))
        elif op.a.buffer.scope is Scope.FRAGMENT:
            moved[op] = Seq((StoreSums(op.a), op))
    return moved


def _accumulators(launch: Launch, machine: SimtMachine, groups: dict[Gemm, int]) -> list[Buffer]:
    """Return the fragments that products add to, if all of these may be in tensor memory."""
    products = nodes_of(launch.body, Gemm)
    if any(refusal(op, machine) or op not in groups for op in products):
        return []  # warps would spread sums otherwise than rows of tensor memory lie
    found = dict.fromkeys(op.c.buffer for op in products)
    return [
        b
        for b in found
        if _have_whole_columns(b, {groups[op] for op in products if op.c.buffer is b})
    ]


def _in_groups(launch: Launch) -> dict[Gemm, int]:
    """Return products that one or two whole groups of threads run, and how many these are."""
    x, y, z = launch.threads
    if y * z != 1:
        return {}
    parts = nodes_of(launch.body, OnThreads)
    inside = {op: part for part in parts for op in nodes_of(part, Gemm)}
    threads = {op: inside[op].count if op in inside else x for op in nodes_of(launch.body, Gemm)}
    begin = {op: inside[op].first if op in inside else 0 for op in threads}
    return {
        op: count // GROUP
        for op, count in threads.items()
        if count in (GROUP, 2 * GROUP) and begin[op] == 0
    }


def _have_whole_columns(buffer: Buffer, groups: set[int]) -> bool:
    """Whether a thread can hold its part of a fragment, in whole vectors of columns."""
    if len(groups) != 1:
        return False
    count, left = divmod(columns_of(buffer), min(groups))
    return not left and count % 8 == 0 and count <= 128


class _Residence:
    """Follows one accumulator through a program, and whether its registers are up to date."""

    def __init__(self, launch: Launch, buffer: Buffer) -> None:
        products = [op for op in nodes_of(launch.body, Gemm) if op.c.buffer is buffer]
        self.buffer, self.region = buffer, whole(buffer)
        self.adds = any(not (isinstance(op.clear, Const) and op.clear.value) for op in products)

    def visit(self, stmt: Stmt, is_current: bool, is_needed: bool) -> tuple[Stmt, bool]:
        """Return `stmt` with loads and stores, and whether registers are current behind it.

        Tensor memory `is_needed` if something behind `stmt` may ask it for what registers have.
        """
        if isinstance(stmt, Seq):
            made = []
            for k, part in enumerate(stmt.body):
                needed = is_needed or self._is_needed_by(stmt.body[k + 1 :], part)
                one, is_current = self.visit(part, is_current, needed)
                made.append(one)
            return replace(stmt, body=tuple(made)), is_current
        if isinstance(stmt, Gemm) and stmt.c.buffer is self.buffer:
            return Seq((Barrier(), stmt)), False
        if self._has_products(stmt):
            once = isinstance(stmt, (If, OnThreads))  # others repeat their body
            before, needed = is_current and once, is_needed or not once
            return map_statements(stmt, lambda part: self.visit(part, before, needed)[0]), False
        if isinstance(stmt, Alloc):
            return stmt, is_current
        reads, writes = self._touches(stmt)
        made = [LoadSums(self.region)] if reads and not is_current else []
        made.append(stmt)
        made += [StoreSums(self.region)] if writes and self.adds and is_needed else []
        return (Seq(tuple(made)) if len(made) > 1 else stmt), is_current or reads or writes

    def _is_needed_by(self, rest: Sequence[Stmt], stmt: Stmt) -> bool:
        """Whether products follow `stmt`, or somebody reads behind the products in it."""
        if any(self._has_products(later) for later in rest):
            return True
        return self._has_products(stmt) and any(any(self._touches(later)) for later in rest)

    def _has_products(self, stmt: Stmt) -> bool:
        return any(op.c.buffer is self.buffer for op in nodes_of(stmt, Gemm))

    def _touches(self, stmt: Stmt) -> tuple[bool, bool]:
        """Return whether a statement needs previous values in registers, and whether it writes."""
        own = [a for a in accesses(stmt) if a.buffer.storage is self.buffer]
        writes = any(a.mode is not Mode.READ for a in own)
        reads = any(a.mode is not Mode.WRITE for a in own)
        if isinstance(stmt, Fill) and stmt.dst.static_extents == self.buffer.static_shape:
            return False, writes
        return reads or writes, writes
