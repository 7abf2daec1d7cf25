"""Which equations are one kernel: cuts stand where no rule makes one loop of two reductions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from tile_api.arrays.equations.equations import Output
from tile_api.arrays.equations.expressions import Expr, extents_of, load, rebuild, walk
from tile_api.arrays.planning.common_results import CommonResults
from tile_api.arrays.planning.inner_products import (
    WIDEST_INNER,
    along_columns,
    compared_sums,
    has_wide_columns,
    is_inner_product,
    is_of_columns,
    of_other_tiles,
    product_columns,
    reads_less,
    reductions_over,
    tiled_variables,
)
from tile_api.arrays.planning.kernel_dependences import (
    read_by_nodes,
    read_by_others,
    read_by_steps,
)
from tile_api.arrays.planning.matrix_vector import ONE, has_vectors, with_rows
from tile_api.arrays.planning.merging import merged, rejoined
from tile_api.arrays.planning.recurrence_parts import (
    ALL_AT_ONCE,
    closed,
    new_tensors,
    outermost,
    read_of,
    separated,
)
from tile_api.arrays.planning.scatter import scatter_of
from tile_api.arrays.planning.tasks import Task, in_order, streamed, variables_of
from tile_api.arrays.planning.tile_folds import folds_of_tiles, with_folds_outside
from tile_api.arrays.reductions.groups import grouped, tiles_multiplied

LONGEST_AGAIN = 128
"""Elements of a sum that is computed again for each that reads it."""
SHARED = 3
"""Kernels that would compute a longer one: then it has a kernel of its own."""
LONGEST_INDEX = 32
"""Expressions in an index that each block of a scatter computes: of more it reads the result."""
FEW_COLUMNS = 32
"""Results for each row that one block makes of what it has reduced."""


@dataclass(frozen=True)
class Cuts:
    """Where kernels end, as far as no rule says so.

    Parameters
    ----------
    apart
        Reductions that have kernels of their own: they are computed once.
    is_read_again
        Whether products within the loop that are read after it are computed again in another one.
    widest
        Columns of a product in whose blocks another product is computed again.
    """

    apart: frozenset[Expr] = frozenset()
    is_read_again: bool = False
    widest: float = WIDEST_INNER


BY_RULES = Cuts()


def tasks_of(outputs: Sequence[Output], cuts: Cuts = BY_RULES) -> list[Task]:
    """Return the kernels that compute outputs, each after those whose results it reads."""
    partition = _Partition(cuts)
    groups = _groups(outputs)
    known = partition.share(groups)
    for group in groups:
        inside = {n for x in _reductions(group) for n in walk(*x.args)} | cuts.apart
        mine = {n: read for n, read in known.items() if n in inside}
        partition.lower([_replaced(o, mine) for o in group] if mine else group)
        known |= partition.read(group)
    return in_order(partition.tasks)


def _groups(outputs: Sequence[Output]) -> list[list[Output]]:
    """Return outputs by the variable that their kernel goes through, each after what it reads."""
    groups: dict[str | None, list[Output]] = {}
    for output in outputs:
        (alone,) = merged([output])
        groups.setdefault(streamed([alone.element]), []).append(output)
    if len(groups.keys() - {None}) < 2:
        groups = {next(iter(groups.keys() - {None}), None): [*outputs]} if outputs else {}
    left: list[list[Output]] = []
    ordered: list[list[Output]] = []
    for stream, members in groups.items():
        rows = with_rows(merged(members)) if stream is not None else []
        sums = [] if stream is None else along_columns(rows, stream, _extents(rows))
        apart = {o.name for o in rows if o.element in sums}
        left += [
            part
            for is_apart in (True, False)
            if (part := [o for o in members if (o.name in apart) == is_apart])
        ]
    while left:
        ready = next(
            (g for g in left if not any(_reads(g, h) for h in left if h is not g)), left[0]
        )
        left.remove(ready)
        ordered.append(ready)
    return ordered


def _reads(group: Sequence[Output], other: Sequence[Output]) -> bool:
    """Tell whether a group of outputs is computed of reductions which another one gives."""
    inside = set(walk(*(o.element for o in group)))
    return any(o.element.op == "reduce" and o.element in inside for o in other)


class _Partition:
    def __init__(self, cuts: Cuts) -> None:
        self.cuts = cuts
        self.tasks: list[Task] = []
        self.made: dict[Expr, Expr] = {}
        self.common = CommonResults(self.made)
        self.order: dict[str, int] = {}
        self.beside: list[Output] = []

    def lower(self, outputs: Sequence[Output], reasons: Iterable[str] = ()) -> None:
        """Add the kernel of `outputs`, after those that it reads."""
        left = self._recur(outputs, reasons)
        if early := read_by_others(left, outputs):
            self.lower(early, reasons)
        outputs = [o for o in left if o not in early]
        outputs = self._scattered(merged(outputs), reasons) if outputs else []
        if not outputs:
            return
        outputs = with_folds_outside(outputs)
        rows = with_rows(outputs)
        outputs = rows if _has_folds_of_rows(rows) else outputs
        for output in outputs:
            for k, i in enumerate(output.indices):
                self.order.update(dict.fromkeys(i.free, k))
        stream = streamed([output.element for output in outputs])
        while stream is not None:
            elsewhere = [*self.beside]  # kernels that are being made, this one among them
            nodes = _cuts(outputs, stream, self.cuts)
            if early := read_by_nodes(nodes, outputs, self.made):
                self.lower(early, reasons)
                outputs = [o for o in outputs if o not in early]
                stream = streamed([output.element for output in outputs])
                continue
            cuts = self._cut(nodes, outputs)
            if not cuts:
                break
            outputs = [
                _replaced(o, cuts) for o in outputs if o in elsewhere or o not in self.beside
            ]
            if not outputs:
                return
            stream = streamed([output.element for output in outputs])
        self.tasks.append(Task(rejoined(outputs, stream), stream, tuple(dict.fromkeys(reasons))))

    def _scattered(self, outputs: Sequence[Output], reasons: Iterable[str]) -> list[Output]:
        """Add kernels of sums over indices that are data; return what is left to compute."""
        left = []
        for o in outputs:
            sums = [x for x in outermost(o.element) if scatter_of(x, o) is not None]
            for x in sums:
                if x is o.element:
                    self._scatter(o, reasons)
                elif x not in self.made:
                    indices = tuple(i for i in o.indices if i.free & x.free)
                    self.made[x] = load(f"t{len(self.made)}", indices, x.dtype)
                    shape = tuple(i.value[1] for i in indices)
                    self._scatter(
                        Output(self.made[x].value, shape, x.dtype, indices, x), (_SCATTERED,)
                    )
            if o.element not in sums:
                left.append(_replaced(o, {x: self.made[x] for x in sums}) if sums else o)
        return left

    def _scatter(self, o: Output, reasons: Iterable[str]) -> None:
        for k, i in enumerate(o.indices):
            self.order.update(dict.fromkeys(i.free, k))
        scatter = scatter_of(o.element, o)
        assert scatter is not None
        if sum(1 for _ in walk(scatter.index)) > LONGEST_INDEX:
            o = _replaced(o, {scatter.index: self._all_of(scatter.index)})
            scatter = scatter_of(o.element, o)
            assert scatter is not None
        inner = dict.fromkeys(n for root in scatter.roots for n in outermost(root))
        o = _replaced(o, self._cut(dict.fromkeys(inner, _BEFORE)))
        why = tuple(dict.fromkeys(reasons))
        self.tasks.append(Task((o,), None, why, scatter=scatter_of(o.element, o)))

    def _all_of(self, x: Expr) -> Expr:
        """Add the kernel of an expression, for all values of its variables; return its load."""
        if x not in self.made:
            found = {i.value[0]: i for i in walk(x) if i.op == "index" and i.value[0] in x.free}
            indices = tuple(
                found[v] for v in sorted(found, key=lambda v: (self.order.get(v, 0), v))
            )
            self.made[x] = load(f"t{len(self.made)}", indices, x.dtype)
            shape = tuple(i.value[1] for i in indices)
            self.lower([Output(self.made[x].value, shape, x.dtype, indices, x)], (_BEFORE,))
        return self.made[x]

    def _recur(self, outputs: Sequence[Output], reasons: Iterable[str]) -> list[Output]:
        """Add kernels of the recurrences in outputs; return what is left to compute."""
        split = separated(outputs, self.made)
        rest = [*split.rest]
        for part in split.parts:
            if early := read_by_steps(part.roots, rest, self.made):
                self.lower(early, reasons)
                rest = [o for o in rest if o not in early]
            for k, i in enumerate((part.steps.of.step, *part.indices)):
                self.order.setdefault(i.value[0], k)
            apart = closed(part)
            for tensor in new_tensors((n for n in apart if n.op == "scan"), self.made):
                self.lower([tensor], (ALL_AT_ONCE,))
            known = self._cut({n: ALL_AT_ONCE for n in apart if n.op == "reduce"})
            for n in apart:
                if n.op == "scan":
                    known[n] = rebuild(read_of(n, self.made), {**known})
            part = part.with_known(known)
            why = (*reasons, *part.reasons)
            self.tasks.append(
                Task(part.outputs, None, tuple(dict.fromkeys(why)), recurrence=part.steps)
            )
        return rest

    def share(self, groups: Sequence[Sequence[Output]]) -> dict[Expr, Expr]:
        """Make kernels of long sums that many groups would compute, and of those that are apart.

        Return their loads.
        """
        for output in (o for group in groups for o in group):
            for k, i in enumerate(output.indices):
                self.order.update(dict.fromkeys(i.free, k))
        nested = [
            {n for x in _reductions(group) for n in walk(*x.args) if is_long(n)} for group in groups
        ]
        given = dict.fromkeys(o.element for group in groups for o in group)
        apart = self.cuts.apart | compared_sums(given)
        left = [n for n in walk(*given)
                if n in apart or (n not in given and sum(n in mine for mine in nested) >= SHARED)
        ]  # fmt: skip
        known: dict[Expr, Expr] = {}
        while left:
            ready = [n for n in left if not any(m in left for m in walk(*n.args))]
            new = {n: rebuild(n, dict(known)) for n in ready}
            made = self._cut({x: _ONCE if n in apart else _SHARED for n, x in new.items()})
            known |= {n: made[x] for n, x in new.items()}
            left = [n for n in left if n not in known]
        return known

    def read(self, outputs: Sequence[Output]) -> dict[Expr, Expr]:
        """Return the loads of outputs, which later kernels may read."""
        sums = (o for o in outputs if o.element.op == "reduce" and o.dtype == o.element.dtype)
        new = {o.element: o.read_from(o.name) for o in sums}
        self.made |= new
        return new

    def _cut(self, nodes: Mapping[Expr, str], outputs: Sequence[Output] = ()) -> dict[Expr, Expr]:
        """Make kernels of `nodes`, one for those with the same variables; return their loads.

        With each node stands why it is one. What of `outputs` has a kernel's rows is beside it.
        """
        groups: dict[tuple[tuple[str, ...], str, bool], list[Expr]] = {}
        for node in nodes:
            free = tuple(
                sorted(node.free, key=lambda v: (v not in self.order, self.order.get(v, 0), v))
            )
            groups.setdefault((free, node.value[1], has_vectors(node)), []).append(node)
        for (free, *_), members in groups.items():
            for part in _in_order(members):
                self._make(part, free, [nodes[node] for node in part], outputs)
        return {node: self.made[node] for node in nodes}

    def _make(
        self, nodes: Sequence[Expr], free: Sequence[str], reasons: Iterable[str],
        given: Sequence[Output],
    ) -> None:  # fmt: skip
        """Add the kernel of reductions over one variable, with the same free variables."""
        outputs = [o for o in given if o not in self.beside and _is_of_rows(o, nodes, free)]
        self.beside += outputs
        self.read(outputs)
        complete = {o.name for task in self.tasks for o in task.outputs}
        for node in nodes:
            if node in self.made or self.common.has(node, complete):
                continue
            indices = {i.value[0]: i for i in walk(node) if i.op == "index"}
            mine = tuple(indices[v] for v in free)
            name = f"t{len(self.made)}"
            self.made[node] = load(name, mine, node.dtype)
            shape = tuple(i.value[1] for i in mine)
            outputs.append(Output(name, shape, node.dtype, mine, node))
        for group in _groups(outputs):
            self.lower(group, reasons)


def _is_of_rows(o: Output, nodes: Sequence[Expr], free: Sequence[str]) -> bool:
    """Tell whether an output has the rows of reductions, and is computed of nothing but these."""
    tops = outermost(o.element)
    return bool(tops) and variables_of(o) == set(free) and set(tops) <= set(nodes)


def _reductions(outputs: Sequence[Output]) -> list[Expr]:
    return [x for x in walk(*(o.element for o in outputs)) if x.op == "reduce"]


def is_long(x: Expr) -> bool:
    """Tell whether a sum of products is better loaded than computed again."""
    return x.op == "reduce" and x.value[0] == "sum" and x.value[2] > LONGEST_AGAIN


def _in_order(nodes: Sequence[Expr]) -> list[list[Expr]]:
    """Return reductions over one variable in parts: each after those that it needs finished.

    Whoever reads another one through a reduction over a further variable needs it finished.
    """
    parts: list[list[Expr]] = []
    left = [*nodes]
    while left:
        ready = [node for node in left if not _reads_through(node, left)]
        parts.append(ready)
        left = [node for node in left if node not in ready]
    return parts


def _reads_through(node: Expr, others: Sequence[Expr]) -> bool:
    through = [n for n in walk(node) if n.op == "reduce" and n.value[1] != node.value[1]]
    inside = set(walk(*through))
    return any(other in inside for other in others if other is not node)


def _replaced(output: Output, cuts: dict[Expr, Expr]) -> Output:
    return Output(
        output.name, output.shape, output.dtype, output.indices, rebuild(output.element, dict(cuts))
    )


def _reductions_within(elements: Iterable[Expr], stream: str) -> Iterable[Expr]:
    """Return what is reduced in a loop through the stream."""
    return (n for x in reductions_over(elements, stream) for n in outermost(x.args[0]))


def _cuts(outputs: Sequence[Output], stream: str, cuts: Cuts) -> dict[Expr, str]:
    """Return the reductions that are kernels of their own, and why; a result alone is one."""
    elements = [output.element for output in outputs]
    is_wide = has_wide_columns(elements, stream, cuts.widest)
    folds = folds_of_tiles(x.args[0] for x in reductions_over(elements, stream))
    again = set(_reductions_within(elements, stream)) if cuts.is_read_again else set()
    extents = _extents(outputs)
    columns = product_columns(outputs, stream, extents)
    tiled = tiled_variables(reductions_over(elements, stream))
    is_inner = partial(is_inner_product, stream=stream, tiled=tiled)
    found: dict[Expr, str] = {}
    seen: set[tuple[Expr, bool]] = set()

    def look(x: Expr, inside: bool) -> None:
        if (x, inside) in seen:
            return
        seen.add((x, inside))
        if x.op == "reduce":
            nested = [n for n in outermost(x.args[0]) if n not in folds]
            less = [n for n in nested if reads_less(n, x, stream, extents, WIDEST_INNER)]
            if x.value[1] == stream:
                inside = x.value[0] != "prod"  # which is computed element by element
            elif inside and stream in x.free and less and less == nested and tiles_multiplied(x):
                found.update(dict.fromkeys(less, _AGAIN.format(stream)))
                return
            elif not inside and is_of_columns(x, stream, columns):
                pass  # the tile of a product, folded when it is complete
            elif inside and x in folds:
                return
            elif is_wide or nested or not is_inner(x, inside=inside or x in again):
                found[x] = _reason(x, stream, inside=inside, is_wide=is_wide)
                return
        for arg in x.args:
            look(arg, inside)

    for output in outputs:
        look(output.element, False)
        found.update(dict.fromkeys(_of_fewer_dimensions(output, stream, extents), _SPREAD))
    found.update(dict.fromkeys(of_other_tiles(outputs, stream, extents), _SPREAD))
    found.update(dict.fromkeys(along_columns(outputs, stream, extents), _COLUMNS))
    return {x: why for x, why in found.items() if [x] != elements}


def _extents(outputs: Sequence[Output]) -> dict[str, int]:
    return extents_of([*(o.element for o in outputs), *(i for o in outputs for i in o.indices)])


_ONCE = "to write it takes less time than to compute it again"
_SCATTERED = "it is added where indices say"
_BEFORE = "what it is added to is found by indices, one after the other"
_SHARED = "several kernels read it: each would compute it again"
_AGAIN = "it does not change along {}, where it is read: each step would compute it again"
_SPREAD = "its result is read along further dimensions: each block would compute it again"
_COLUMNS = "it has the columns of a product and not its rows: each block of rows would compute it"


def _reason(x: Expr, stream: str, *, inside: bool, is_wide: bool) -> str:
    """Return why a reduction over another variable is a kernel of its own."""
    over = x.value[1]
    if not inside:
        return f"it goes through {over}, and the kernel that reads it through {stream}"
    if stream not in x.free:
        return _AGAIN.format(stream)
    if is_wide:
        return (
            f"it is read by more than {WIDEST_INNER} columns: each block of columns would compute "
            "it again"
        )
    return f"it is no product of two tiles in the loop through {stream}"


def _of_fewer_dimensions(output: Output, stream: str, extents: Mapping[str, int]) -> list[Expr]:
    """Return the reductions of an output that has variables of its own beside theirs.

    Each block along those variables would compute the reductions again, unless there is one.
    """
    tops = [x for x in outermost(output.element) if x.value[1] == stream]
    own = variables_of(output) - frozenset({stream}).union(*(x.free for x in tops))
    is_product = any(len(grouped(x.args[0], stream)) == 2 for x in tops)
    if len(own) == 1 and not is_product and extents[min(own)] <= FEW_COLUMNS:
        return []
    return tops if own else []


def _has_folds_of_rows(outputs: Sequence[Output]) -> bool:
    """Tell whether no fold changes along the row that a vector was made, as if it were a column."""
    stream = streamed([o.element for o in outputs])
    if stream is None:
        return True
    return all(ONE not in x.free for x in along_columns(outputs, stream, _extents(outputs)))
