"""Equations as a function of NumPy, for programs whose own function cannot be copied."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tile_api.arrays.equations.equations import Equations
from tile_api.arrays.equations.evaluate import BINARY, FOLDS, UNARY
from tile_api.arrays.equations.expressions import BITS, INFIX, Expr, add, const, extents_of, walk
from tile_api.arrays.equations.listing import Definition, definitions
from tile_api.arrays.equations.recurrence import Steps, steps_of
from tile_api.arrays.equations.sizes import at_most

IN_NUMPY = "in_numpy"
"""What programs call the function that says what is right."""


def equations_in_numpy(equations: Equations) -> list[str]:
    """Return the lines of a function that computes each equation with arrays of all variables."""
    return [*_Text(equations).lines()]


def sizes_told(equations: Equations) -> Iterator[str]:
    """Yield the statements that give symbols their values."""
    for name, (p, axis) in equations.symbols.items():
        yield f"{name} = {p.tensor}.shape[{axis}]"


@dataclass(frozen=True)
class _Carried:
    """A carried value, or all of them, as an array with all axes, and the indices along its own."""

    name: str
    indices: tuple[Expr, ...]
    shape: tuple[int, ...]


class _Text:
    def __init__(self, equations: Equations) -> None:
        self.equations = equations
        self.made = definitions(equations)
        extents = extents_of(d.value for d in self.made)
        extents |= {i.value[0]: i.value[1] for d in self.made for i in d.indices if i.op == "index"}
        self.extents = extents
        self.axes = {name: axis for axis, name in enumerate(extents)}
        self.names = {name: f"at{axis}" for axis, name in enumerate(extents)}
        self.carried: dict[tuple[str, int], _Carried] = {}
        self.sequences: dict[Steps, list[_Carried]] = {}
        self.sliced = ""
        self.parameters = {p.tensor: p for p in equations.parameters}
        self.tensors = self.parameters | {o.name: o for o in equations.materialised}

    def lines(self) -> Iterator[str]:
        equations = self.equations
        yield f"def {IN_NUMPY}({', '.join(self.parameters)}):"
        yield f'    """Return what the equations of {equations.name} mean."""'
        yield from (f"    {line}" for line in sizes_told(equations))
        if self.extents:
            names = ", ".join(self.names[v] for v in self.extents)
            spans = ", ".join(f":{n}" for n in self.extents.values())
            comma = "," * (len(self.extents) == 1)
            yield f"    {names}{comma} = np.ogrid[{spans}{comma}]"
        computed = {o.name: o for o in equations.computed}
        stored = {o.name for o in equations.materialised}
        for d in self.made:
            yield from self._scans(d.value)
            if d.name in stored:
                yield f"    {d.name} = {self._result(d)}"
            elif d.name not in computed:
                yield f"    {d.name} = {self(d.value)}"
        made = {d.name: d for d in self.made}
        results = [
            o.name if o.name in stored else self._result(made[o.name]) for o in equations.outputs
        ]
        joined = ", ".join(results)
        yield f"    return {joined}" if equations.structure is None else f"    return ({joined},)"

    def _scans(self, x: Expr) -> Iterator[str]:
        """Return loops over the steps of recurrences in an expression: all carried values."""
        for node in walk(x):
            if node.op != "scan" or steps_of(node) in self.sequences:
                continue
            steps = steps_of(node)
            of, count = steps.of, len(self.sequences)
            names = [f"h{count}_{k}" for k in range(len(of.carried))]
            shapes = [self._shape(steps, k) for k in range(len(of.carried))]
            for k, name in enumerate(names):
                self.carried[of.token, k] = _Carried(f"{name}[-1]", of.indices(k), shapes[k])
                start = self(steps.starts[k])
                yield f"    {name} = [np.broadcast_to({start}, {shapes[k]})]"
            at, self.names[of.variable] = self.names[of.variable], "t"
            self.sliced = of.variable
            order = f"reversed(range({of.extent}))" if of.is_backward else f"range({of.extent})"
            yield f"    for t in {order}:"
            made = [
                f"np.broadcast_to({self(x)}, {shape})"
                for x, shape in zip(steps.steps, shapes, strict=True)
            ]
            yield f"        made = {', '.join(made)},"
            for k, name in enumerate(names):
                yield f"        {name}.append(made[{k}])"
            self.names[of.variable], self.sliced = at, ""
            axis = self.axes[of.variable]
            for name in names:
                all_of = f"{name}[::-1]" if of.is_backward else name
                yield f"    {name} = np.concatenate({all_of}, axis={axis})"
            self.sequences[steps] = [
                _Carried(name, (of.step, *of.indices(k)), shapes[k]) for k, name in enumerate(names)
            ]

    def _shape(self, steps: Steps, k: int) -> tuple[int, ...]:
        """Return the sizes of a carried value along all axes."""
        own = {name for name, _ in steps.of.carried[k]}
        outer = frozenset().union(*(x.free for x in (*steps.starts, *steps.steps)))
        wanted = own | (outer - steps.of.bound)
        return tuple(n if name in wanted else 1 for name, n in self.extents.items())

    def _element(self, carried: _Carried, args: Sequence[Expr]) -> str:
        """Return elements of what is carried, an array with all axes."""
        is_sliced = self.sliced and carried.shape[self.axes[self.sliced]] > 1
        if args == carried.indices and not is_sliced:
            return carried.name
        at = {i.value[0]: self(arg) for i, arg in zip(carried.indices, args, strict=True)
              if i.op == "index"}  # fmt: skip
        places = [
            at.get(name, self.names[name] if n > 1 else "0")
            for name, n in zip(self.extents, carried.shape, strict=True)
        ]
        return f"{carried.name}[{', '.join(places)}]"

    def _result(self, d: Definition) -> str:
        """Return an output: the axes of its indices, in their order."""
        o = next(o for o in self.equations.computed if o.name == d.name)
        wanted = [self.axes[i.value[0]] for i in d.indices if i.op == "index"]
        rest = [axis for axis in range(len(self.axes)) if axis not in wanted]
        whole = tuple(n if a in wanted else 1 for a, n in enumerate(self.extents.values()))
        text = f"np.broadcast_to({self(d.value)}, {whole}).transpose({(*wanted, *rest)})"
        return f'{text}.reshape({o.shape}).astype("{o.dtype}")'

    def __call__(self, x: Expr) -> str:
        match x.op:
            case "const":
                return self._constant(x)
            case "index":
                return self.names[x.value[0]]
            case "load":
                return self._load(x)
            case "reduce":
                return self._reduced(x)
            case "carry":
                return self._element(self.carried[x.value], x.args)
            case "scan":
                at = add(x.args[0], const(int(x.value.is_before == x.value.of.is_backward)))
                name = self.sequences[steps_of(x)][x.value.carry]
                return self._element(name, (at, *x.args[1 : x.value.rank]))
            case "cast":
                return f'np.asarray({self(x.args[0])}).astype("{x.dtype}")'
            case "round":
                return f'({self(x.args[0])}).astype("{x.value}").astype("{x.dtype}")'
            case "bits":
                return f'np.asarray({self(x.args[0])}).view("{x.dtype}")'
            case "where":
                return f"np.where({', '.join(map(self, x.args))})"
            case "reciprocal":
                return f"(1 / {self(x.args[0])})"
            case "erf":
                return f'np.vectorize(math.erf, otypes=["{x.dtype}"])({self(x.args[0])})'
            case "multiply" if x.args[1].op == "reciprocal":
                return f"({self(x.args[0])} / {self(x.args[1].args[0])})"
            case op if op in _INFIX:
                return f"({self(x.args[0])} {_INFIX[op]} {self(x.args[1])})"
        function = UNARY.get(x.op) or BINARY[x.op]
        return f"np.{function.__name__}({', '.join(map(self, x.args))})"

    def _constant(self, x: Expr) -> str:
        if x.dtype.is_bool:
            return f"np.bool_({x.value})"
        if x.dtype.is_float and not math.isfinite(x.value):
            return f'np.{x.dtype}("{x.value}")'
        return repr(x.value) if x.dtype in ("int64", "float32") else f"np.{x.dtype}({x.value!r})"

    def _load(self, x: Expr) -> str:
        tensor = self.tensors.get(x.value)
        if tensor is None:
            if self.sliced in x.free:
                return f"np.take({x.value}, [t], axis={self.axes[self.sliced]})"
            return str(x.value)  # a definition: it has all axes
        places = []
        for i, size in zip(x.args, tensor.shape, strict=True):
            is_inside = i.op == "const" or (i.op == "index" and at_most(i.value[1], size))
            # Elements that nothing chooses may lie outside.
            places.append(self(i) if is_inside else f"np.clip({self(i)}, 0, {size - 1})")
        text = f"{x.value}[{', '.join(places) or '()'}]"
        return text if tensor.dtype == x.dtype else f'{text}.astype("{x.dtype}")'

    def _reduced(self, x: Expr) -> str:
        kind, variable, extent = x.value
        body = self(x.args[0])
        if variable not in x.args[0].free:
            body = f"({body} + 0 * {self.names[variable]})"
        words = [f"axis={self.axes[variable]}", "keepdims=True"]
        if kind in ("sum", "prod"):
            words.append(f'dtype="{x.dtype}"')
        elif extent == 0:
            words.append(f"initial={'-' if kind == 'max' else ''}np.inf")
        return f"np.{FOLDS[kind].__name__}({body}, {', '.join(words)})"


_INFIX = INFIX | BITS
