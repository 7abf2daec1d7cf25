"""Which equations are computed in the steps of a recurrence, and which in other kernels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from tile_api.arrays.capturing.scan import nested
from tile_api.arrays.equations.equations import Output
from tile_api.arrays.equations.expressions import (
    Expr,
    const,
    extents_of,
    load,
    make,
    rebuild,
    walk,
)
from tile_api.arrays.equations.index_bounds import is_below, is_natural, range_of
from tile_api.arrays.equations.recurrence import (
    Steps,
    Variables,
    replaced,
    steps_of,
)
from tile_api.arrays.equations.sizes import Size
from tile_api.arrays.equations.substitution import substituted
from tile_api.arrays.planning.carried_values import beside_products, of_what_is_read
from tile_api.arrays.planning.carried_variables import (
    in_terms_of,
    over_carried,
    renamed,
    same_variables,
)
from tile_api.arrays.planning.kernel_dependences import loaded

ALL_AT_ONCE = "it does not depend on what is carried: it is computed for all steps at once"
_ELSEWHERE = "it is carried from step to step, and read at other steps"
_SORTED = "it is sorted, and read along other rows"
MOST_IN_A_STEP = 8192
"""Elements that a step gives beyond those that are carried."""


@dataclass(frozen=True)
class Part:
    """A recurrence and the outputs that its steps compute.

    Parameters
    ----------
    steps
        Several recurrences of as many steps are one that carries all their values.
    outputs
        In terms of nodes of op ``carry``: values before the step, and after it.
    indices
        The variables of what is carried.
    """

    steps: Steps
    outputs: tuple[Output, ...]
    reasons: tuple[str, ...]

    @property
    def indices(self) -> tuple[Expr, ...]:
        """The variables of the elements that are carried."""
        of = self.steps.of
        found = [i for k in range(len(of.carried)) for i in of.indices(k) if i.op == "index"]
        return tuple(dict.fromkeys(found))

    @property
    def roots(self) -> tuple[Expr, ...]:
        """All that is computed."""
        return (*self.steps.starts, *self.steps.steps, *(o.element for o in self.outputs))

    def with_known(self, known: Mapping[Expr, Expr]) -> Part:
        """Return it with loads for what other kernels compute."""
        seen = dict(known)
        starts, steps = (
            tuple(rebuild(x, seen) for x in group)
            for group in (self.steps.starts, self.steps.steps)
        )
        outputs = tuple(replace(o, element=rebuild(o.element, seen)) for o in self.outputs)
        names = same_variables(self.steps.of, outputs)
        carried = tuple(
            tuple((names.get(name, name), n) for name, n in variables)
            for variables in self.steps.of.carried
        )
        of = replace(self.steps.of, carried=carried)
        starts = tuple(renamed(x, names) for x in starts)
        steps = tuple(over_carried(of, renamed(x, names)) for x in steps)
        outputs = tuple(in_terms_of(of, output) for output in outputs)
        outputs = tuple(replace(o, element=over_carried(of, o.element)) for o in outputs)
        return replace(self, steps=Steps(of, starts, steps), outputs=outputs)


@dataclass(frozen=True)
class Separated:
    """What recurrences compute, and the outputs that read their results from memory."""

    parts: tuple[Part, ...]
    rest: tuple[Output, ...]


def separated(outputs: Sequence[Output], made: dict[Expr, Expr]) -> Separated:
    """Return the recurrences in outputs.

    Parameters
    ----------
    made
        Tensors between kernels, by what they hold: new ones are added.
    """
    groups: dict[tuple[Steps, ...], list[Output]] = {}
    apart: dict[str, Output] = {}
    rest: list[Output] = []
    left = [*outputs]
    for node in _ends_of_spans(outputs):
        for tensor in new_tensors([node], made):
            apart[tensor.name] = tensor
            groups.setdefault((steps_of(node),), []).append(tensor)
    while left:
        output = left.pop(0)
        nodes = outermost(output.element, "scan")
        if not nodes:
            rest.append(output)
            continue
        element = of_what_is_read(output.element, nodes)
        output, nodes = replace(output, element=element), outermost(element, "scan")
        sums = _inner_sums(output)
        if sums:
            for node in (n for n in sums if n not in made):
                tensor = _sum_of(node, made)
                apart[tensor.name] = tensor
                left.append(tensor)
            known = {node: made[node] for node in sums}
            left.append(replace(output, element=rebuild(output.element, known)))
            continue
        beside = beside_products(output.element, nodes)
        if beside:
            for node in beside.values():
                for tensor in new_tensors([node], made):
                    apart[tensor.name] = tensor
                    left.append(tensor)
            known = {node: read_of(alone, made) for node, alone in beside.items()}
            left.append(replace(output, element=rebuild(output.element, known)))
            continue
        key = tuple(dict.fromkeys(map(steps_of, nodes)))
        if _is_within_steps(output, nodes) and not {*key} & _over_before(output, groups, apart):
            groups.setdefault(key, []).append(output)
            continue
        for node in nodes:
            for tensor in new_tensors([node], made):
                if tensor.element.op == "scan" and steps_of(tensor.element) == steps_of(node):
                    apart[tensor.name] = tensor
                    groups.setdefault((steps_of(node),), []).append(tensor)
                else:
                    left.append(tensor)
        known = {node: read_of(node, made) for node in nodes}
        # the places of what is read may be carried themselves
        left.append(replace(output, element=rebuild(output.element, known)))
    parts = [_part(key, members, apart) for key, of in groups.items() for members in _by_sums(of)]
    return Separated(tuple(parts), tuple(rest))


def _ends_of_spans(outputs: Sequence[Output]) -> list[Expr]:
    """Return what is read after spans: kernels that go through the steps store it on the way."""
    nodes = [x for x in walk(*(o.element for o in outputs)) if x.op == "scan"]
    tokens = {x.value.of.token for x in nodes}
    return [x for x in nodes if _span(x) is not None and not x.free & tokens]


def _over_before(
    output: Output,
    groups: Mapping[tuple[Steps, ...], Sequence[Output]],
    apart: Mapping[str, Output],
) -> set[Steps]:
    """Return the recurrences whose last step is taken before an output is computed."""
    found: set[Steps] = set()
    seen: set[str] = set()
    todo = [output]
    while todo:
        for name in loaded([todo.pop().element]) & apart.keys() - seen:
            seen.add(name)
            mine = {steps_of(x) for x in walk(apart[name].element) if x.op == "scan"}
            todo += (apart[name], *(o for key in groups if mine & {*key} for o in groups[key]))
            found |= mine
    return found


def _inner_sums(output: Output) -> list[Expr]:
    """Return sums of carried values that are summed again, over further dimensions of these.

    Each is a product of tiles, as both together are not.
    """
    found: dict[Expr, None] = {}
    elements = [*walk(output.element)]
    carried = {
        name for x in elements if x.op == "scan" for name in (x.value.of.token, x.value.of.after)
    }
    for x in elements:
        if x.op != "reduce" or x.value[0] != "sum":
            continue
        for inner in outermost(x.args[0]):
            nodes = outermost(inner, "scan")
            if (
                inner.value[0] == "sum"
                and not inner.free & carried  # it is computed in the steps of another
                and len(nodes) == 1
                and x.value[1] in inner.free
                and nodes[0].args[0].op == "index"
                and nodes[0].args[0].value[0] in inner.free - {x.value[1]}  # no place in a search
            ):
                found[inner] = None
    return [x for x in found if not any(y is not x and y in found for y in walk(x))]


def _by_sums(outputs: Sequence[Output]) -> Iterator[list[Output]]:
    """Yield outputs by the dimensions of carried values that they sum over: others are products."""
    groups: dict[frozenset[str], list[Output]] = {}
    others: list[Output] = []
    for o in outputs:
        sums = [x for x in outermost(o.element) if any(n.op == "scan" for n in walk(x.args[0]))]
        over = frozenset(x.value[1] for x in sums)
        (groups.setdefault(over, []) if over else others).append(o)
    first, *more = groups.values() or [[]]
    yield [*others, *first]
    yield from more


def _sum_of(x: Expr, made: dict[Expr, Expr]) -> Output:
    """Return a tensor between kernels with a sum of carried values."""
    (node,) = outermost(x, "scan")
    args = [*steps_of(node).outer, *node.args[: node.value.rank]]
    others = sorted((i for i in walk(x) if i.op == "index"), key=lambda i: str(i.value[0]))
    names = [i for i in (*args, *others) if i.op == "index" and i.value[0] in x.free]
    indices = tuple(dict.fromkeys(names))
    name = f"t{len(made)}"
    made[x] = load(name, indices, x.dtype)
    return Output(name, tuple(i.value[1] for i in indices), x.dtype, indices, x)


def closed(part: Part) -> list[Expr]:
    """Return the reductions and recurrences that do not depend on what is carried.

    Those at which others are read come before these.

    Raises
    ------
    UnknownArrayFunction
        If a recurrence does, which stands in a step of another.
    """
    of = part.steps.of
    found: dict[Expr, None] = {}
    seen: set[Expr] = set()
    todo = [*part.roots]
    while todo:
        x = todo.pop()
        if x in seen:
            continue
        seen.add(x)
        depends = x.free & {of.token, of.after}
        if x.op == "scan" and depends:
            raise nested()
        if x.op in ("reduce", "scan") and not depends:
            found[x] = None
            todo += x.args[: x.value.rank] if x.op == "scan" else ()
        else:
            todo += reversed(x.args)
    return [x for x in walk(*found) if x in found]


def outermost(x: Expr, op: str = "reduce") -> list[Expr]:
    """Return the reductions in `x`, or the recurrences, that are in no other."""
    found: dict[Expr, None] = {}
    todo, seen = [x], set[Expr]()
    while todo:
        at = todo.pop()
        if at in seen:
            continue
        seen.add(at)
        if at.op == op:
            found[at] = None
        else:
            todo += reversed(at.args)
    return [*found]


def _is_within_steps(output: Output, nodes: Sequence[Expr]) -> bool:
    """Tell whether the step at which values are carried can compute an output."""
    ofs = {node.value.of for node in nodes}
    at = {node.args[0] for node in nodes}
    if len(at) != 1 or len({(of.extent, of.is_backward) for of in ofs}) != 1:
        return False
    (step,), of = at, nodes[0].value.of
    if any(of.sorted_by for of in ofs) and not _are_of_sorted_rows(output, nodes):
        return False
    if step.op == "const":
        if step.value != of.last or any(node.value.is_before for node in nodes):
            return False
        names: frozenset[str] = frozenset()
    elif step.op == "index" and step in output.indices and step.value[1] <= of.extent:
        names = step.free
    else:
        return False
    places = [arg for node in nodes for arg in node.args[1 : node.value.rank]]
    if any(arg.free & names for arg in places):
        return False
    if any(n.op == "scan" for n in walk(*places)):  # a search goes through all that is carried
        return False
    if not all(map(_is_inside, nodes)):  # tensors have zeros beside them
        return False
    further = frozenset().union(*(i.free for i in output.indices)) - names
    further -= frozenset().union(*(node.free for node in nodes))
    sums = [x for x in walk(output.element) if x.op == "reduce" and set(nodes) & set(walk(x))]
    if not sums:
        return not further
    if any(x.value[1] in names for x in sums):  # it goes over all steps
        return False
    extents = extents_of(output.indices)
    return prod(extents[name] for name in further) <= MOST_IN_A_STEP


def _are_of_sorted_rows(output: Output, nodes: Sequence[Expr]) -> bool:
    """Tell whether an output reads nothing but elements of the row that is sorted for it."""
    if any(x.op == "reduce" and {*nodes} & {*walk(x)} for x in walk(output.element)):
        return False  # kernels of their own go through what is sorted faster
    rows = {node.args[2 : node.value.rank] for node in nodes}
    (row, *others), steps = rows, {steps_of(node) for node in nodes}
    variables = [i for i in row if i.op == "index"]
    is_whole = all(i.op == "index" or n == 1 for i, (_, n) in
                   zip(row, nodes[0].value.of.carried[0][1:], strict=True))  # fmt: skip
    is_apart = len({*variables}) == len(variables) and {*variables} <= {*output.indices}
    return len(steps) == 1 and not others and is_whole and is_apart


def _is_inside(node: Expr) -> bool:
    """Tell whether an element of what is carried is read, wherever a window is."""
    sizes = (n for _, n in node.value.of.carried[node.value.carry])
    places = node.args[1 : node.value.rank]
    return all(_is_between(at, n) for at, n in zip(places, sizes, strict=True))


def _is_between(at: Expr, size: int) -> bool:
    """Tell whether an index is known to be one of a dimension."""
    found = range_of(at)
    if found is not None and not isinstance(size, Size):
        return found[0] >= 0 and found[1] < size
    return is_natural(at) and is_below(at, size)


def _canonical(node: Expr) -> Expr:
    """Return a node at the variables of its recurrence; at the last step, if it is read there."""
    read, steps = node.value, steps_of(node)
    at = const(read.of.last) if _is_last(node) else read.of.step
    if _span(node) is not None:
        at = read.of.end_of(read.of.span)
    return steps.value(read.carry, at, read.of.indices(read.carry), is_before=read.is_before)


def _is_last(node: Expr) -> bool:
    at = node.args[0]
    return at.op == "const" and at.value == node.value.of.last and not node.value.is_before


def _span(node: Expr) -> Expr | None:
    """Return the span after which a carried value is read, if the end of one is."""
    return None if _is_last(node) or node.value.is_before else node.value.of.span_of(node.args[0])


def _in_order(node: Expr, step: Expr, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Return the indices of an element: steps are rows where what they read lies so.

    What is sorted lies side by side.
    """
    if node.value.of.sorted_by is not None:
        return (*indices[1:], indices[0])
    if _is_last(node):
        return indices
    if _span(node) is not None:
        return (step, *indices)
    steps = steps_of(node)
    loads = [x for x in walk(*steps.steps) if x.op == "load" and x.args]
    is_row = any(x.args[-1] is steps.of.step for x in loads)
    return (*indices, step) if is_row else (step, *indices)


def new_tensors(nodes: Iterable[Expr], made: dict[Expr, Expr]) -> Iterator[Output]:
    """Yield tensors between kernels with the carried values that nodes read, unless known."""
    for node in nodes:
        if _canonical(node) not in made:
            yield _tensor_of(node, made)


def _tensor_of(node: Expr, made: dict[Expr, Expr]) -> Output:
    canonical = _canonical(node)
    steps, read = steps_of(node), node.value
    step = read.of.step if _span(node) is None else read.of.span
    indices = (*steps.outer, *_in_order(node, step, read.of.indices(read.carry)))
    name = f"t{len(made)}"
    made[canonical] = load(name, indices, node.dtype)
    shape = tuple(i.value[1] if i.op == "index" else 1 for i in indices)
    step = steps.steps[read.carry]
    is_plain = canonical.args[0] is steps.of.step and not read.is_before
    is_carried = steps.of.token in step.free or not is_plain
    return Output(name, shape, node.dtype, indices, canonical if is_carried else step)


def read_of(node: Expr, made: Mapping[Expr, Expr]) -> Expr:
    """Return what a node reads, from the tensor between kernels."""
    known = made[_canonical(node)]
    at = _in_order(node, _span(node) or node.args[0], node.args[1 : node.value.rank])
    outer = known.args[: len(known.args) - len(at)]
    return load(known.value, (*outer, *at), node.dtype)


def _part(recurrences: Sequence[Steps], outputs: Sequence[Output], apart: Iterable[str]) -> Part:
    merged, first = _merged(recurrences)
    of = merged.of
    made = []
    for output in outputs:
        nodes = outermost(output.element, "scan")
        known = {
            node: make(
                "carry", *node.args[1 : node.value.rank],
                value=(of.token if node.value.is_before else of.after,
                       first[steps_of(node)] + node.value.carry),
                dtype=node.dtype,
            )
            for node in nodes
        }  # fmt: skip
        at, element, indices = nodes[0].args[0], rebuild(output.element, known), output.indices
        if at.op == "index":
            element = substituted(element, {at.value[0]: of.step})
            indices = tuple(of.step if i is at else i for i in indices)
        made.append(replace(output, element=element, indices=indices))
    why = _ELSEWHERE if of.sorted_by is None else _SORTED
    reasons = (why,) if {*apart} & {o.name for o in outputs} else ()
    return Part(merged, tuple(made), reasons)


def _merged(recurrences: Sequence[Steps]) -> tuple[Steps, dict[Steps, int]]:
    """Return one recurrence that carries the values of all, and where those of each begin."""
    first: dict[Steps, int] = {}
    carried: tuple[Variables, ...] = ()
    starts: tuple[Expr, ...] = ()
    steps: tuple[Expr, ...] = ()
    of = recurrences[0].of
    for one in recurrences:
        first[one] = count = len(carried)

        def moved(x: Expr, token: str = one.of.token, count: int = count) -> Expr | None:
            if x.op != "carry" or x.value[0] != token:
                return None
            args = tuple(replaced(arg, frozenset({token}), moved) for arg in x.args)
            return make("carry", *args, value=(of.token, x.value[1] + count), dtype=x.dtype)

        carried += one.of.carried
        starts += one.starts
        steps += tuple(replaced(x, frozenset({one.of.token}), moved) for x in one.steps)
    return Steps(replace(of, carried=carried), starts, steps), first
