"""Equations as a function of NumPy, for programs whose own function cannot be copied."""

from __future__ import annotations

import math
from collections.abc import Iterator

from tile_api.arrays.capture import Equations
from tile_api.arrays.equations import Expr, extents_of
from tile_api.arrays.evaluate import BINARY, FOLDS, UNARY
from tile_api.arrays.listing import Definition, definitions

IN_NUMPY = "in_numpy"
"""What programs call the function that says what is right."""


def equations_in_numpy(equations: Equations) -> list[str]:
    """Return the lines of a function that computes each equation with arrays of all variables."""
    return [*_Text(equations).lines()]


class _Text:
    def __init__(self, equations: Equations) -> None:
        self.equations = equations
        self.made = definitions(equations)
        extents = extents_of(d.value for d in self.made)
        extents |= {i.value[0]: i.value[1] for d in self.made for i in d.indices if i.op == "index"}
        self.extents = extents
        self.axes = {name: axis for axis, name in enumerate(extents)}
        self.names = {name: f"at{axis}" for axis, name in enumerate(extents)}
        self.parameters = {p.tensor: p for p in equations.parameters}

    def lines(self) -> Iterator[str]:
        equations = self.equations
        yield f"def {IN_NUMPY}({', '.join(self.parameters)}):"
        yield f'    """Return what the equations of {equations.name} mean."""'
        if self.extents:
            names = ", ".join(self.names[v] for v in self.extents)
            spans = ", ".join(f":{n}" for n in self.extents.values())
            comma = "," * (len(self.extents) == 1)
            yield f"    {names}{comma} = np.ogrid[{spans}{comma}]"
        outputs = {o.name: o for o in equations.outputs}
        for d in self.made:
            if d.name not in outputs:
                yield f"    {d.name} = {self(d.value)}"
        results = [self._result(d) for d in self.made if d.name in outputs]
        joined = ", ".join(results)
        yield f"    return {joined}" if equations.structure is None else f"    return ({joined},)"

    def _result(self, d: Definition) -> str:
        """Return an output: the axes of its indices, in their order."""
        (o,) = (o for o in self.equations.outputs if o.name == d.name)
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
            case "cast":
                return f'np.asarray({self(x.args[0])}).astype("{x.dtype}")'
            case "round":
                return f'({self(x.args[0])}).astype("{x.value}").astype("{x.dtype}")'
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
        parameter = self.parameters.get(x.value)
        if parameter is None:
            return str(x.value)  # a definition: it has all axes
        places = []
        for i, size in zip(x.args, parameter.shape, strict=True):
            is_inside = i.op == "const" or (i.op == "index" and i.value[1] <= size)
            # Elements that nothing chooses may lie outside.
            places.append(self(i) if is_inside else f"np.clip({self(i)}, 0, {size - 1})")
        text = f"{x.value}[{', '.join(places) or '()'}]"
        return text if parameter.dtype == x.dtype else f'{text}.astype("{x.dtype}")'

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


_INFIX = {"add": "+", "multiply": "*", "lt": "<", "le": "<=", "eq": "==", "ne": "!=",
          "floordiv": "//", "mod": "%", "bitand": "&", "bitor": "|", "bitxor": "^",
          "shl": "<<", "shr": ">>", "and": "&", "or": "|"}  # fmt: skip
