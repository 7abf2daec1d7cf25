"""Tiles of a kernel: what is copied, what is computed once, which buffers serve again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING

from tile_api.arrays.equations.expressions import Expr, make, rebuild, walk
from tile_api.arrays.equations.expressions import add as plus
from tile_api.arrays.equations.index_bounds import is_below, is_natural, is_read
from tile_api.arrays.equations.numerics import is_strict
from tile_api.arrays.equations.quotients import EXACT, STEPS
from tile_api.arrays.planning.bounds import Stretch, conjuncts
from tile_api.arrays.planning.plan import Plan, factor
from tile_api.arrays.planning.storage import tile_dtype
from tile_api.arrays.planning.tile_folds import is_fold
from tile_api.arrays.printing.text import ExpressionText, Tile, nan_propagated
from tile_api.arrays.printing.window_loops import along_rows
from tile_api.arrays.reductions.algebra import terms
from tile_api.arrays.reductions.groups import grouped
from tile_core.dtypes import DType, dtype_of

if TYPE_CHECKING:
    from collections.abc import Iterator

_TOP = 3
"""How deep the statements of a kernel stand."""

_SLOW = frozenset(
    ("reciprocal", "sqrt", "exp", "log", "pow", "tanh", "sin", "cos", "erf", "floordiv", "mod")
)
"""What is computed once for a row, rather than for each of its elements."""


class Tiles:
    """Writes the statements of a kernel, and remembers which tile holds which expression."""

    def __init__(
        self,
        plan: Plan,
        dtypes: Mapping[str, DType],
        shapes: Mapping[str, tuple[int, ...]],
        names: set[str],
    ) -> None:
        self.plan = plan
        self.dtypes = dtypes
        self.shapes = shapes
        self._checked: set[tuple[Expr, int]] = set()
        self.held: dict[Expr, Tile] = {}
        self.text = ExpressionText(plan, dtypes, self.held)
        self.allocations: list[str] = []
        self.prologue: list[str] = []
        self.lines: list[str] = []
        self.depth = _TOP
        self.looped = {plan.stream} if plan.stream else set[str]()
        """Variables that loops go along: what depends on one is not computed in front of them."""
        self.reuses = True
        """Whether a tile may be overwritten that nobody reads afterwards."""
        self._names = names
        self._masked: dict[Expr, str | None] = {}
        self._copies: set[str] = set()
        self._in_front: set[str] = set()
        self._in_loop = self._is_copied = False
        self._stretch: Stretch | None = None
        self._met: dict[tuple[str, tuple[str, ...], str, str], int] = {}
        self._kept: dict[tuple[tuple[str, tuple[str, ...], str, str], int], str] = {}

    def put(self, text: str) -> None:
        """Write a statement."""
        self.lines.append("    " * self.depth + text)

    def fresh(self, base: str) -> str:
        """Return a name that nothing has yet."""
        name, count = base, 1
        while name in self._names:
            count += 1
            name = f"{base}_{count}"
        self._names.add(name)
        return name

    def allocate(
        self, base: str, dims: tuple[str, ...], scope: str = "fragment", dtype: str = "float32"
    ) -> str:
        """Return a new buffer; the loops of a kernel over one stream share theirs."""
        key = (base, dims, scope, dtype)
        if self._in_loop:
            self._met[key] = self._met.get(key, 0) + 1
            if (key, self._met[key]) in self._kept:
                return self._kept[key, self._met[key]]
        name = self.fresh(base)
        if self._in_loop:
            self._kept[key, self._met[key]] = name
        sizes = [self.plan.axes[v].text for v in dims] or ["1"]
        shape = f"({sizes[0]},)" if len(sizes) == 1 else f"({', '.join(sizes)})"
        self.allocations.append(f'{name} = T.alloc_{scope}({shape}, "{dtype}")')
        return name

    @contextmanager
    def loop(self, first: str, last: str, stretch: Stretch | None = None) -> Iterator[None]:
        """Write a loop over blocks of the stream; tiles of other blocks are forgotten."""
        stream, carried = self.plan.stream, {s.mine for s in self.plan.states}
        for x in [*self.held]:
            if stream in x.free and x not in carried:
                del self.held[x]
        span = last if first == "0" else f"{first}, {last}"
        head, self._is_copied = len(self.lines), False
        self.put(f"for ko in T.serial({span}):")
        self.depth += 1
        self._in_loop, self._met, self._stretch = True, {}, stretch
        yield
        self._in_loop, self._stretch = False, None
        self.depth -= 1
        if self._is_copied and any(c.column for c in self.plan.carried):
            pipelined = f"T.Pipelined({span}, num_stages={self.plan.blocks.stages})"
            self.lines[head] = self.lines[head].replace(f"T.serial({span})", pipelined)

    @contextmanager
    def in_front(self) -> Iterator[None]:
        """Write in front of all loops."""
        kept, held = (self.lines, self.depth, self._in_loop), {*self.held}
        self.lines, self.depth, self._in_loop = self.prologue, _TOP, False
        yield
        self.lines, self.depth, self._in_loop = kept
        self._in_front |= {self.held[x][0] for x in self.held.keys() - held}

    def once(self, x: Expr) -> AbstractContextManager[None]:
        """Write what computes `x` in front of all loops if it is the same in each step."""
        return self.in_front() if self._in_loop and self._is_first(x) else nullcontext()

    def _is_first(self, x: Expr) -> bool:
        """Tell whether `x` can be computed in front of all loops."""
        if self.looped & x.free or any(n.op == "state" for n in walk(x)):
            return False
        return all(self.held[n][0] in self._in_front for n in self._within(x) if n in self.held)

    def parallel(self, dims: Sequence[str], *statements: str) -> None:
        """Write a loop over the elements of a tile."""
        sizes = ", ".join(self.plan.axes[v].text for v in dims) or "1"
        names = ", ".join(self.plan.axes[v].loop for v in dims) or "_"
        self.put(f"for {names} in T.Parallel({sizes}):")
        self.lines += ["    " * (self.depth + 1) + statement for statement in statements]

    def in_parts(self, x: Expr, *, is_exact: bool = True) -> tuple[list[str], str]:
        """Return statements that name parts of `x`, and `x` as text in terms of them."""
        return self.text.in_parts(x, self.fresh, is_exact=is_exact)

    def dims(self, x: Expr) -> tuple[str, ...]:
        """Return the variables of a tile of `x`: row, stream, columns, the rest."""
        plan = self.plan
        order = [plan.row, plan.stream, *plan.columns, *plan.axes]
        return tuple(
            v
            for v in dict.fromkeys(order)
            if v is not None and v in x.free and v not in plan.points
        )

    def is_box(self, x: Expr) -> bool:
        """Tell whether a load is a box of a tensor: each variable of the tile is one index."""
        tile = set(self.plan.axes) - self.plan.points
        if x.op == "spread":
            inner = x.args[0]
            return self.is_box(inner) and len(self.dims(x)) == len(self.dims(inner)) + 1
        if x.op != "load":
            return False
        plain = [i.value[0] for i in x.args if i.op == "index" and i.value[0] in tile]
        others = [i for i in x.args if not (i.op == "index" and i.value[0] in tile)]
        return (
            len(set(plain)) == len(plain) == len(self.dims(x))
            and not any(i.free & tile for i in others)
        )  # fmt: skip

    def ends_in(self, zero: str | None, x: Expr, v: str) -> bool:
        """Tell whether a tile of `x` is `zero` beyond the end of a variable: as it was copied.

        A box of two dimensions whose tensor ends there, and is not held with another mask.
        """
        if x.op != "load" or not self.is_box(x) or len(self.dims(x)) != 2:
            return False
        if self._masked.get(x) not in (None, zero):
            return False
        sizes = zip(x.args, self.shapes[x.value], strict=False)
        return any(i.op == "index" and i.value == (v, size) for i, size in sizes)

    def has_columns(self, x: Expr, row: str, stream: str) -> bool:
        """Tell whether the boxes that `x` reads lie in memory with the row's elements together."""
        found = []
        for n in walk(x):
            if n.op == "load" and {row, stream} <= n.free and self.is_box(n):
                names = [i.value[0] for i in n.args if i.op == "index"]
                found.append(names.index(stream) < names.index(row))
        return bool(found) and all(found)

    def region(self, name: str, indices: Sequence[Expr]) -> str:
        """Return the box of a tensor that a tile covers."""
        parts = []
        for i in indices:
            if i.op == "index" and i.value[0] not in self.plan.points:
                axis = self.plan.axes[i.value[0]]
                first = axis.start
                stop = axis.text if first == "0" else f"{first} + {axis.text}"
                parts.append(f"{first} : {stop}" if first != "0" else f"0:{stop}")
            else:
                parts.append(self.text(i))
        return f"{name}[{', '.join(parts) or '0'}]"

    def staged(self, x: Expr, scope: str, base: str, dtype: str) -> Tile:
        """Return a tile with a copy of a box."""
        if x not in self.held:
            box, rows = (x.args[0], x.args[1:]) if x.op == "spread" else (x, ())
            self.check_indices(box)
            tile = set(self.plan.axes) - self.plan.points
            indices = (*rows, *box.args)
            dims = tuple(i.value[0] for i in indices if i.op == "index" and i.value[0] in tile)
            name = self.allocate(base, dims, scope, dtype)
            if x.dtype.is_float and dtype != x.dtype:
                self.text.narrow.add(name)
            self._is_copied = self._is_copied or (self._in_loop and scope == "shared")
            if rows and self.plan.axes[rows[0].value[0]].size > 1:  # all rows are that one
                self.parallel(dims, f"{name}[{self.text.loops(dims)}] = {self.text(box)}")
            else:
                self.put(f"T.copy({self.region(box.value, box.args)}, {name})")
            self.held[x] = (name, dims)
        return self.held[x]

    def prepare(self, x: Expr) -> None:
        """Copy the boxes that element-wise work on `x` reads, and compute its inner products."""
        self._prepare(x, set())

    def _prepare(self, x: Expr, seen: set[Expr]) -> None:
        if x in self.held or x in seen:
            return
        seen.add(x)
        if x.op == "load":
            self.check_indices(x)
        if self.is_box(x) and len(self.dims(x)) == 2:
            name, _ = self.staged(x, "fragment", f"{x.value.lower()}_tile", x.dtype)
            if self.plan.stream is None or self.plan.is_resident:
                self._copies.add(name)  # nothing reads it again, but what is written after it
        elif x.op == "reduce" and is_fold(x) and not any(n.op == "state" for n in walk(x)):
            with self.once(x):
                for n in walk(*x.args):  # as products read them
                    if self.is_box(n) and len(self.dims(n)) == 2:
                        self.staged(n, "shared", f"{n.value}_tile", str(self.dtypes[n.value]))
                self.fold(x, ())
        elif x.op == "reduce" and self.plan.stream is not None and self.plan.stream not in x.free:
            self.fold(x, [o.element for o in self.plan.finals])
        elif x.op == "reduce":
            self.inner_product(x)
        else:
            for arg in x.args:
                self._prepare(arg, seen)

    def check_indices(self, x: Expr) -> None:
        """Compute the indices of a load that are data once, and check them."""
        for k, (at, size) in enumerate(zip(x.args, self.shapes[x.value], strict=False)):
            is_inside = is_natural(at) and is_below(at, size)
            if not is_read(at) or is_inside or (at, size) in self._checked:
                continue
            self._checked.add((at, size))
            with self.in_front() if self._is_first(at) else nullcontext():
                self._check(at, size, f"an index of dimension {k} of {x.value}")

    def _check(self, at: Expr, size: int, what: str) -> None:
        dims = self.dims(at)
        if dims:
            self.computed(at, dims, "at", ())
        else:
            self.prepare(at)
        parts, text = self.in_parts(at)
        inside = f"T.And(0 <= {text}, {text} < {size})"
        for axis in (self.plan.axes[v] for v in dims):
            if axis.extent % axis.size:
                inside = f"T.Or({self.text.at(axis.name)} >= {axis.extent}, {inside})"
        check = f'T.device_assert({inside}, "{what} is outside of its {size} elements")'
        if dims:
            self.parallel(dims, *parts, check)
        else:
            for line in (*parts, check):
                self.put(line)

    def fold(self, x: Expr, later: Sequence[Expr]) -> None:
        """Write a reduction of each row of a tile that is complete."""
        kind, over, extent = x.value
        body, dims = self.computed(x.args[0], self.dims(x.args[0]), "row", later)
        rest = tuple(v for v in dims if v != over)
        name = self.allocate("folded", rest, dtype=str(x.dtype))
        operator = "sum" if kind == "mean" else kind
        nan = nan_propagated(kind, x.dtype)
        self.put(f"T.reduce_{operator}({body}, {name}, dim={dims.index(over)}{nan})")
        if kind == "mean":
            self.parallel(rest, f"{name}[{self.text.loops(rest)}] /= {extent}")
        self.held[x] = (name, rest)

    def inner_product(self, x: Expr) -> None:
        """Write a product of tiles within a step, such as the scores of a block."""
        over, row = x.value[1], self.plan.row
        groups = sorted(grouped(x.args[0], over), key=lambda g: row not in g.variables)
        factors = narrowed([factor(group, x) for group in groups])
        if any(len(self.dims(f)) != 2 for f in factors):  # of a matrix and a vector, say
            return self.fold(x, ())
        types = operand_dtypes(factors, self.dtypes)
        (a, a_dims), (b, b_dims) = map(self.operand, factors, types)
        dims = tuple(v for v in (*a_dims, *b_dims) if v != over)
        name = self.allocate("scores", dims, dtype=x.dtype)
        flags = ", transpose_A=True" * (a_dims[0] == over) + ", transpose_B=True" * (
            b_dims[1] == over
        )
        policy = ", policy=T.GemmWarpPolicy.FullRow" if len(self.plan.states) > 1 else ""
        self.put(f"T.gemm({a}, {b}, {name}{flags}, clear_accum=True{policy})")
        self.held[x] = (name, dims)

    def operand(self, x: Expr, dtype: str) -> Tile:
        """Return a factor of a product: a copy in shared memory, or what is computed first."""
        if not self.is_box(x):
            with self.once(x):
                if any(is_fold(n) for n in walk(x)):
                    self.hoist(x, self.dims(x))
                return self.computed(x, self.dims(x), "factor", (), dtype=dtype)
        if self.plan.stream in x.free or self.plan.stream is None or x in self.held:
            return self.staged(x, "shared", f"{x.value}_tile", dtype)
        with self.in_front():  # the same in each step
            return self.staged(x, "shared", f"{x.value}_tile", dtype)

    def computed(
        self, x: Expr, dims: tuple[str, ...], base: str, later: Sequence[Expr], *,
        mask: str | None = None, dtype: str | None = None,
    ) -> Tile:  # fmt: skip
        """Return a tile with the elements of `x`.

        Parameters
        ----------
        later
            What is computed afterwards: a tile that it does not read may be overwritten.
        mask
            What elements beyond the end of the stream are.
        """
        if x in self.held and (mask is None or self._masked.get(x) == mask):
            held = self.held[x]
            if held[1] == dims and (dtype is None or dtype == tile_dtype(x)):
                return held
        whole, x = x, self._with_sums(x)
        needed = self._needed(x, dims)
        if needed:
            self.computed(x.args[1], dims, base, later)
        self.prepare(x)
        kind = dtype or str(tile_dtype(x))
        if x in self.held and self.held[x][1] == dims and mask is None and kind == tile_dtype(x):
            return self.held[x]
        reuse = self._replaceable(x, dims, later) if kind == tile_dtype(x) else None
        name = self.held[reuse][0] if reuse is not None else self.allocate(base, dims, dtype=kind)
        is_partial = needed and mask is None and reuse is x.args[1]
        self._fill((name, dims), x, kind, mask, needed if is_partial else "")
        if reuse is not None:
            del self.held[reuse]
        if kind == tile_dtype(x) and {*dims} == {*self.dims(x)}:
            self.held[whole] = self.held[x] = (name, dims)
            self._masked[whole] = mask
        return name, dims

    def _fill(self, tile: Tile, x: Expr, kind: str, mask: str | None, needed: str) -> None:
        """Write the elements of `x` to a tile; if `needed`, for some blocks only."""
        name, dims = tile
        is_read = any(n in self.held for n in walk(x))
        with along_rows(x, () if is_read else dims, self.plan.axes) as (inner, rows):
            parts, text = self.in_parts(inner, is_exact=kind != x.dtype)
            if kind != x.dtype and kind != tile_dtype(x):
                text = f'T.cast({text}, "{kind}")'
            stream = self.plan.stream
            if mask is not None and stream is not None:
                inside = f"{self.text.at(stream)} < {self.plan.axes[stream].extent}"
                text = f"T.if_then_else({inside}, {text}, {mask})"
            if needed:
                self.put(f"if {needed}:")
            self.depth += bool(needed)
            loops = [at for v in dims for at in rows.get(v, (v,))]
            self.parallel(loops, *parts, f"{name}[{self.text.loops(dims)}] = {text}")
            self.depth -= bool(needed)

    def _needed(self, x: Expr, dims: tuple[str, ...]) -> str:
        """Return for which blocks of the loop the mask of a tile is needed, if not for all."""
        s = self._stretch
        is_mask = s is not None and x.op == "where" and {*conjuncts(x.args[0])} <= s.certain
        return s.but if s is not None and is_mask and self.dims(x.args[1]) == dims else ""

    def hoist(self, x: Expr, dims: tuple[str, ...], exact: bool = False) -> None:
        """Compute what is slow and the same along a dimension of a tile of `x` once, before it.

        A quotient by it becomes a product with its reciprocal, unless it has to be `exact`, as
        have quotients by numbers that are still there.
        """
        self._hoist(x, dims, exact, set())

    def _hoist(self, x: Expr, dims: tuple[str, ...], exact: bool, seen: set[object]) -> None:
        if x in self.held or not x.args or x.op == "reduce" or (x, exact) in seen:
            return
        seen.add((x, exact))
        mine = self.dims(x)
        is_exact = exact or is_strict() or bool(x.args[0].is_constant) or x.value == EXACT
        is_rounded = is_exact and x.op == "reciprocal"
        is_there = self._in_loop or self.plan.is_resident or self.plan.stream not in mine
        if (
            is_there
            and len(mine) < len(dims)
            and x.dtype.is_float
            and self._is_slow(x)
            and not is_rounded
        ):
            with self.once(x):
                self.computed(x, mine, "scale", ())
            return
        for arg in x.args:
            self._hoist(arg, dims, exact or x.op in STEPS, seen)

    def _is_slow(self, x: Expr) -> bool:
        return any(n.op in _SLOW for n in self._within(x) if n not in self.held)

    def _within(self, x: Expr, but: Expr | None = None) -> Iterator[Expr]:
        """Yield the parts of `x`, but not those within what is held, or within `but`."""
        seen, todo = set[Expr](), [x]
        while todo:
            n = todo.pop()
            if n in seen:
                continue
            seen.add(n)
            yield n
            if n is not but and (n not in self.held or n.op == "state"):
                todo += n.args

    def _replaceable(self, x: Expr, dims: tuple[str, ...], later: Sequence[Expr]) -> Expr | None:
        """Return what is held in a tile that nobody reads after `x` is computed in its place."""
        found = None
        for n in walk(x) if self.reuses else ():
            if n not in self.held or self.held[n][1] != dims or n.op == "state":
                continue
            if n.op not in ("load", "spread") or self.held[n][0] in self._copies:
                same = tile_dtype(n) == tile_dtype(x)
                if same and not any(self._reads(y, n, x) for y in later):
                    found = n
        return found

    def _reads(self, x: Expr, n: Expr, through: Expr) -> bool:
        """Tell whether `x` reads `n`, beside through what is computed now or held already."""
        return n in self._within(x, but=through)

    def _with_sums(self, x: Expr) -> Expr:
        """Find sums that are held among the terms of exponents, in whatever order they stand."""
        known: dict[Expr, Expr] = {}
        sums = [held for held in self.held if held.op == "add"]
        for n in walk(x):
            if n.op != "exp" or n in self.held:
                continue
            left = terms(n.args[0])
            for held in sums:
                parts = terms(held)
                if all(part in left for part in parts):
                    rest = held
                    for part in left:
                        rest = rest if part in parts else plus(rest, part)
                    known[n] = make("exp", rest)
                    break
        return rebuild(x, known) if known else x


_BYTES = frozenset({"int4", "uint4", "int8", "uint8"})


def narrowed(factors: Sequence[Expr]) -> Sequence[Expr]:
    """Return the factors of a product; integers of bytes as they were before they were widened."""
    inner = [f.args[0] if f.op == "cast" else f for f in factors]
    is_narrow = not factors[0].dtype.is_float and all(x.dtype in _BYTES for x in inner)
    return inner if is_narrow else factors


def operand_dtypes(factors: Sequence[Expr], dtypes: Mapping[str, DType]) -> list[str]:
    """Return the types of a product's operands.

    Of floats that is the widest of the floats that they are read from.
    """
    if not any(f.dtype.is_float and f.dtype.bits < 64 for f in factors):
        return [str(f.dtype) for f in factors]
    found = [dtypes[n.value] for f in factors for n in walk(f) if n.op == "load"]
    floats = [dtype for dtype in found if dtype.is_float]
    widest = max(floats, key=lambda dtype: dtype.bits, default=dtype_of("float32"))
    same = {dtype for dtype in floats if dtype.bits == widest.bits}
    return [str(widest) if len(same) == 1 else "float32"] * len(factors)
