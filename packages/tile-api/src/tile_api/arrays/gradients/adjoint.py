"""The adjoint of equations, which is equations: from gradients of results to those of arguments.

Each expression has an adjoint with the same index variables: what the results, weighted with
their cotangents, change by when it changes. It is the sum over those who read the expression, and
over the variables that only these have. That sums as early as possible: a row's states have
adjoints with an element for each row. An element of an argument collects the adjoints of the
loads that read it, by `index_maps`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace

from tile_api.arrays.equations import expressions as eq
from tile_api.arrays.equations.dims import variable_of
from tile_api.arrays.equations.equations import Equations, Output, Parameter, printed_name
from tile_api.arrays.equations.expressions import (
    Expr,
    Indices,
    cast,
    const,
    extents_of,
    make,
    rebuild,
    reduce,
    walk,
)
from tile_api.arrays.equations.index_splitting import with_split_indices
from tile_api.arrays.equations.quotients import without_quotients
from tile_api.arrays.equations.recurrence import Steps, steps_of
from tile_api.arrays.equations.substitution import bound, bound_first, substituted, unused
from tile_api.arrays.gradients.derivatives import DERIVATIVES, logistic_of
from tile_api.arrays.gradients.extrema import is_extremum, is_rounded_alike, position_of
from tile_api.arrays.gradients.index_maps import inverse, pulled, range_of
from tile_api.arrays.gradients.recurrences import Rules, before, reverse, with_own_tokens
from tile_api.arrays.gradients.strided_windows import by_remainders
from tile_api.arrays.gradients.sums import Sums, added, is_masked, product_of
from tile_api.arrays.reductions.algebra import is_zero

INFINITE = float("inf")


def adjoint(
    equations: Equations, wrt: Sequence[str], saved: Mapping[Expr, Expr] | None = None
) -> Equations:
    """Return the equations of a vector-Jacobian product, of equations that store no arrays.

    Parameters
    ----------
    wrt
        The parameters for which there are gradients, in this order.
    saved
        What is read instead of expressions that `equations` have computed.

    Returns
    -------
    Equations
        They take what `equations` take, and a cotangent for each output of floats.
    """
    assert not equations.materialised
    eq.begin(*(o.element for o in equations.outputs))
    taken = {p.tensor for p in equations.parameters} | {o.name for o in equations.outputs}
    cotangents: list[Parameter] = []
    for output in equations.outputs:
        if output.dtype.is_float:
            name = new_name(f"d_{output.name}", taken)
            cotangents.append(Parameter(name, output.shape, output.dtype))
    parameters = {p.name: p for p in equations.parameters}
    names = [parameters[name].tensor for name in wrt]
    reverse = _Reverse(prepared(equations), cotangents, names, saved or {})
    outputs = [
        reverse.gradient(parameters[name], new_name(f"d_{parameters[name].tensor}", taken))
        for name in wrt
    ]
    name = f"{equations.name}_vjp"
    return Equations(name, (*equations.parameters, *cotangents), tuple(outputs), tuple)


def prepared(equations: Equations) -> Equations:
    """Return equations as adjoints take them."""
    equations = replace(equations, outputs=tuple(without_quotients(equations.outputs)))
    return with_own_tokens(with_split_indices(equations))


def new_name(name: str, taken: set[str]) -> str:
    """Return a name for a tensor that is not taken, and take it."""
    name = printed_name(name)
    while name in taken:
        name += "_"
    taken.add(name)
    return name


class _Reverse:
    """Adjoints of all expressions, from those that read others to those that are read."""

    def __init__(
        self,
        equations: Equations,
        cotangents: Iterable[Parameter],
        wrt: Sequence[str],
        saved: Mapping[Expr, Expr],
    ) -> None:
        outputs = [o for o in equations.outputs if o.dtype.is_float and 0 not in o.shape]
        given = {c.name: c for c in cotangents}
        weights = [c for c in given.values() if 0 not in c.shape]
        nodes = [*walk(*(o.element for o in outputs))]
        self.extents = extents_of([*nodes, *(i for o in outputs for i in o.indices)])
        self.fixed: frozenset[str] = frozenset()
        self.known = dict(saved)
        self.recurrences = Counter(steps_of(x) for x in nodes if x.op == "scan")
        self._know_carried(nodes, saved or {})
        for x in (x for x in nodes if x.op in eq.COMPARISONS):
            for body, fold in (x.args, x.args[::-1]):
                if is_extremum(fold) and body is fold.args[0]:
                    self.known[x] = self._compared(x, fold)
        self.sums = Sums(nodes, self._read)
        self.shapes = {p.tensor: p.shape for p in (*equations.parameters, *given.values())}
        self.terms: dict[Expr, list[Expr]] = {}
        self.active: set[Expr] = set()
        self.reads: list[tuple[Expr, Expr]] = []
        self.carried: dict[Steps, list[tuple[Expr, Expr]]] = {}
        for x in nodes:
            is_wanted = x.op == "load" and x.value in wrt
            if x.dtype.is_float and (is_wanted or any(arg in self.active for arg in x.args)):
                self.active.add(x)
        for o, c in zip(outputs, weights, strict=True):
            given_here = eq.load(c.tensor, o.indices, c.dtype)
            scope = frozenset().union(*(i.free for i in o.indices))
            self._add(o.element, given_here, scope)
        self._run(nodes)

    def _know_carried(self, nodes: Sequence[Expr], saved: Mapping[Expr, Expr]) -> None:
        """Read carried values in steps as values after the step before."""
        closed = dict(self.known)

        def value(
            steps: Steps, carry: int, at: Expr, args: Indices, is_before: bool = False
        ) -> Expr:
            """Return what a step gave, as it is saved; or what there was before it."""
            of = steps.of
            if is_before:
                return rebuild(steps.value(carry, at, args, is_before=True), closed)
            whole = steps.value(carry, of.step, of.indices(carry))
            if at.op == "const" and at.value == of.last and whole not in saved:
                whole = steps.value(carry, at, of.indices(carry))
            if whole not in saved:
                return rebuild(steps.value(carry, at, args), closed)
            names = (of.variable, *(name for name, _ in of.carried[carry]))
            return substituted(saved[whole], dict(zip(names, (at, *args), strict=True)))

        self.value = value
        for steps in self.recurrences:
            of = steps.of
            self.extents |= {of.variable: of.extent}
            self.extents |= {name: n for variables in of.carried for name, n in variables if name}
        own = {steps.of.token: steps for steps in self.recurrences}
        self.around = {
            token: steps.of.step.free.union(*(i.free for i in steps.outer))
            for token, steps in own.items()
        }
        for x in nodes:  # those at which others are read come first
            if x.op == "scan":
                read = x.value
                at, *args = map(self._read, x.args[: read.rank])
                self.known[x] = value(steps_of(x), read.carry, at, tuple(args), read.is_before)
            elif x.op == "carry":
                places = tuple(map(self._read, x.args))
                steps, carry = own[x.value[0]], x.value[1]

                def after(
                    at: Expr, steps: Steps = steps, carry: int = carry, places: Indices = places
                ) -> Expr:
                    return value(steps, carry, at, places)

                self.known[x] = before(steps, carry, after, places)

    def _run(self, nodes: Sequence[Expr]) -> None:
        for x in reversed(nodes):
            if x in self.terms:
                self._spread(x, self.sums.collected(self.terms.pop(x)))
            if x.op == "scan" and self.recurrences:
                self._spread_recurrence(x)

    def _read(self, x: Expr) -> Expr:
        """Return `x` in terms of what is saved."""
        return rebuild(x, self.known)

    def _hit(self, extremum: Expr) -> Expr:
        """Return whether an element of a row is its extremum.

        A forward pass may round otherwise: it tells where the extremum is, or that is found again.
        """
        kind, variable, extent = extremum.value
        body, best = self._read(extremum.args[0]), self._read(extremum)
        position = self.known.get(position_of(extremum))
        if position is not None:
            here = make("eq", eq.index(variable, extent), position)
            return make("or", here, make("eq", body, best))
        if not is_rounded_alike(body):
            best = reduce(kind, variable, extent, body)
        return make("eq", body, best)

    def _compared(self, x: Expr, extremum: Expr) -> Expr:
        """Return a comparison of the elements of a row with its extremum."""
        hit, plain = self._hit(extremum), make(x.op, *map(self._read, x.args))
        if x.op == "eq":
            return hit
        return make("or", hit, plain) if x.op == "le" else make("and", make("not", hit), plain)

    def _free(self, x: Expr) -> frozenset[str]:
        """Return what `x` depends on: with what is carried, it is another one in each step."""
        return x.free.union(*(self.around[name] for name in x.free & self.around.keys()))

    def _add(self, x: Expr, term: Expr, scope: frozenset[str]) -> None:
        """Add what `x` gets from where the variables of `scope` run."""
        if x not in self.active:
            return
        summed = (scope - self._free(x) - self.fixed) & self.extents.keys()
        for name in sorted(summed, reverse=True):  # the last dimension innermost
            term = self.sums.over(name, self.extents[name], term)
        if not is_zero(term):
            self.terms.setdefault(x, []).append(term)

    def _spread(self, x: Expr, mine: Expr) -> None:
        """Give the operands of `x` their part of its adjoint."""
        if is_zero(mine):
            return
        match x.op:
            case "load" | "carry":
                self.reads.append((x, mine))
            case "scan":
                self.carried.setdefault(steps_of(x), []).append((x, mine))
            case "where":
                condition, one, other = self._read(x.args[0]), *x.args[1:]
                none = const(0, x.dtype)
                self._add(one, _under(mine, lambda y: eq.where(condition, y, none)), self._free(x))
                self._add(
                    other, _under(mine, lambda y: eq.where(condition, none, y)), self._free(x)
                )
            case "cast":
                self._add(x.args[0], cast(mine, x.args[0].dtype), self._free(x))
            case "round":
                self._add(x.args[0], mine, self._free(x))
            case "reduce":
                self._spread_fold(x, mine)
            case "reciprocal" if (logistic := logistic_of(x)) is not None:
                power, by_power = logistic
                self._add(power, self._times(mine, self._read(by_power), x.op), self._free(x))
            case op:
                for arg, by_arg in zip(x.args, DERIVATIVES[op](x, *x.args), strict=True):
                    if by_arg is not None and arg in self.active:
                        self._add(arg, self._times(mine, self._read(by_arg), op), self._free(x))

    def _times(self, x: Expr, by: Expr, op: str) -> Expr:
        """Return the product; a mask is a factor where a product of tiles needs one."""
        is_factor = op == "multiply" and not self._free(by) <= self._free(x)
        if is_factor and all(map(self._exists, walk(by))):
            return product_of([x, by], x)
        return _under(x, lambda y: product_of([y, by], y))

    def _exists(self, x: Expr) -> bool:
        """Tell whether what is read lies in its array, for all values of index variables."""
        if x.op != "load" or x.value not in self.shapes:  # what is saved is read as it lies
            return True
        ranges = [*map(range_of, x.args)]
        return all(
            low >= 0 and high < size
            for (low, high), size in zip(ranges, self.shapes[x.value], strict=True)
        )

    def _spread_fold(self, x: Expr, mine: Expr) -> None:
        kind, variable, extent = x.value
        body, scope = x.args[0], self._free(x) | {variable}
        if kind == "sum":
            self._add(body, mine, scope)
        elif kind == "mean":
            self._add(body, product_of([const(1 / extent, x.dtype), mine], x), scope)
        elif kind == "prod":
            rest = _others(variable, extent, self._read(body))
            self._add(body, _under(mine, lambda y: product_of([y, rest], x)), scope)
        else:
            infinite = make("eq", make("absolute", self._read(x)), const(INFINITE, x.dtype))
            mine = self.sums.collected([product_of([t], t) for t in added(_unless(infinite, mine))])
            if not is_zero(mine):
                hit = self._hit(x)
                one, none = const(1, x.dtype), const(0, x.dtype)
                ties = bound("sum", variable, extent, eq.where(hit, one, none))

                def shared(y: Expr) -> Expr:
                    return eq.where(infinite, none, eq.where(hit, eq.divide(y, ties), none))

                self._add(body, _under(mine, shared), scope)

    def _spread_recurrence(self, x: Expr) -> None:
        """Give steps and starts their part, once all that read carried values have given theirs."""
        steps = steps_of(x)
        self.recurrences[steps] -= 1
        if self.recurrences[steps] or steps not in self.carried:
            return
        rules = Rules(
            self._at, self.sums.collected, self._of_carried, self.sums.over, self._read,
            self.value, self.active.__contains__,
        )  # fmt: skip
        found = reverse(steps, self.carried.pop(steps), rules)
        outer = frozenset().union(*(i.free for i in steps.outer))
        for x, mine in found.others:
            self._add(x, mine, mine.free)
        for weights, roots, more in (
            (found.steps, steps.steps, steps.of.step.free),
            (found.starts, steps.starts, frozenset()),
        ):
            for k, mine in weights.items():
                own = frozenset().union(*(i.free for i in steps.of.indices(k)))
                self._add(roots[k], mine, outer | own | more)

    def _of_carried(self, steps: Steps, weights: Mapping[int, Expr]) -> list[tuple[Expr, Expr]]:
        """Return the carried values that steps read, with their adjoints in a step."""
        of = steps.of
        nodes = [*walk(*(steps.steps[k] for k in weights))]
        inner = copy(self)
        inner.terms, inner.reads, inner.recurrences = {}, [], Counter()
        inner.fixed = self.around[of.token]
        inner.active = set()
        for x in (x for x in nodes if x.dtype.is_float):
            is_mine = x.op == "carry" and x.value[0] == of.token
            if is_mine or any(arg in inner.active for arg in x.args):  # places are integers
                inner.active.add(x)
        for k, mine in weights.items():
            inner._add(steps.steps[k], mine, frozenset().union(*(i.free for i in of.indices(k))))
        inner._run(nodes)
        return inner.reads

    # -- gradients of arguments --------------------------------------------------------------

    def gradient(self, parameter: Parameter, name: str) -> Output:
        """Return the gradient with respect to a parameter."""
        read = [r for r in self.reads if r[0].value == parameter.tensor]
        indices = _indices(parameter, [load for load, _ in read])
        zero = const(0, eq.computed_in(parameter.dtype))

        def found(element: Indices) -> Expr:
            terms = (self._at(load.args, mine, element) for load, mine in read)
            return self.sums.collected([zero, *terms])

        is_of_sums = any(n.op == "reduce" for n in walk(*(mine for _, mine in read)))
        element = by_remainders(indices, [load.args for load, _ in read] * is_of_sums, found)
        return Output(name, parameter.shape, parameter.dtype, indices, element)

    def _at(self, indices: Indices, mine: Expr, element: Indices) -> Expr:
        """Return what an element gets, of what is read at indices, which steps may have made."""
        indices = tuple(map(self._read, indices))
        where = inverse(indices, element)
        found = bound_first(substituted(_met(mine, indices, element), where.values))
        found = _under(found, lambda y: pulled(y, where.equal))
        found = pulled(found, where.conditions)
        for name, extent in sorted(where.summed.items(), reverse=True):
            found = self.sums.over(name, extent, found)
        return found


def _met(x: Expr, indices: Indices, element: Indices) -> Expr:
    """Return `x` with masks that ask for the element, where they ask for `indices`: of borders."""
    known: dict[Expr, Expr] = {}
    for at, u in zip(indices, element, strict=True):
        if len(at.free) > 1 and at.op == "add":
            known[at] = u
            if at.args[0].op == "const":
                known[at.args[1]] = eq.subtract(u, at.args[0])
    if is_masked(x) and known:
        condition, *parts = x.args
        is_plain = not any(n.op == "reduce" for n in walk(condition))
        return eq.where(
            rebuild(condition, {**known}) if is_plain else condition,
            *(_met(part, indices, element) for part in parts),
        )
    return x


def _under(x: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """Change what masks leave of `x`: what they hide is no number, or not there."""
    if x.op == "add" and any(map(is_masked, added(x))):
        return eq.add(*(_under(arg, change) for arg in x.args))
    if not is_masked(x):
        return change(x)
    condition, *parts = x.args
    return eq.where(condition, *(y if is_zero(y) else _under(y, change) for y in parts))


def _unless(condition: Expr, x: Expr) -> Expr:
    """Return `x` as it is where a condition does not hold."""
    known = {n: n.args[2] for n in walk(x) if n.op == "where" and n.args[0] is condition}
    return rebuild(x, dict(known))


def _others(variable: str, extent: int, body: Expr) -> Expr:
    """Return the product without the element at the variable of the product itself."""
    fresh = unused(variable, body.free | {variable})
    there = substituted(body, {variable: eq.index(fresh, extent)})
    is_mine = make("eq", eq.index(fresh, extent), eq.index(variable, extent))
    return bound("prod", fresh, extent, eq.where(is_mine, const(1, body.dtype), there))


def _indices(parameter: Parameter, loads: Sequence[Expr]) -> tuple[Expr, ...]:
    """Return the indices of a gradient: variables of a load that reads elements as they lie."""
    made: list[Expr] = []
    for axis, size in enumerate(parameter.shape):
        taken = frozenset().union(*(i.free for i in made))
        known = (x.args[axis] for x in loads)
        plain = (i for i in known if i.op == "index" and i.value[1] == size)
        fitting = next((i for i in plain if not i.free & taken), None)
        if size == 1:
            made.append(const(0))
        elif fitting is not None:
            made.append(fitting)
        else:
            made.append(eq.index(unused(variable_of(size, frozenset()), taken), size))
    return tuple(made)
