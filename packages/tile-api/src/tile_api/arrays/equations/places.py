"""Where users wrote what is captured: the lines of arrays, of expressions, of loops."""

from __future__ import annotations

import ast
import itertools
import linecache
import types
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tile_api.arrays.equations.equations import ConstantArray, Parameter, constant_array
from tile_api.arrays.equations.expressions import Expr
from tile_api.frontend.source import calling_line, read_source, span_of_line
from tile_core.dtypes import DType
from tile_core.errors import FrontendError, Span, TooManyEquations

Place = tuple[str, int]
"""A file and the number of a line."""

MOST_ARRAYS = 20_000
"""A function that makes more of them while it is captured is in a loop without end."""
_UNROLLED = (
    "a loop of Python over elements or steps is written out: reduce over an axis, or let "
    "tile.scan go through the steps"
)


@dataclass
class Trace:
    """What happened while a function was captured.

    Parameters
    ----------
    lines
        How many arrays each of the user's lines made.
    places
        The line that made an expression first.
    remarks
        What users might not expect, each once.
    taken
        Names of arrays that the function is called with.
    constants
        Arrays that stand in it.
    materialised
        What gives elements of arrays where some of them are stored.
    numbers
        Those of arrays that may be stored: no others are made than when it is captured again.
    is_within
        Whether what is made now is no array of the function itself.
    """

    function: str
    taken: frozenset[str] = frozenset()
    lines: Counter[Place] = field(default_factory=Counter)
    places: dict[Expr, Place] = field(default_factory=dict)
    count: int = 0
    remarks: dict[str, None] = field(default_factory=dict)
    constants: dict[object, ConstantArray] = field(default_factory=dict)
    materialised: Any = None
    numbers: Iterator[int] = field(default_factory=itertools.count)
    is_within: bool = False

    def constant(self, values: np.ndarray[Any, Any], dtype: DType) -> Parameter:
        """Return what kernels take an array as that stands in the function: equal ones are one."""
        name = f"constant{len(self.constants) or ''}"
        while name in self.taken:
            name += "_"
        made = constant_array(name, values, dtype)
        known = self.constants.setdefault((made.digest, values.shape, dtype), made)
        if known is made:
            where = here(None)
            at = f" in line {where[1]}" if where else ""
            self.remarks[
                f"an array of {values.nbytes} bytes stands{at}: kernels take it as {name!r}, as "
                "it was when the function was captured"
            ] = None
        return known.parameter

    def unrolled(self, what: str) -> TooManyEquations:
        """Return the error of a function that is written out by a loop."""
        most = next((line for line, _ in self.lines.most_common(1)), None)
        return TooManyEquations(
            f"{self.function} {what}: it looks unrolled",
            span=None if most is None else loop_around(most),
            hint=_UNROLLED,
        )


TRACE: ContextVar[Trace | None] = ContextVar("trace", default=None)
"""Set while a function is captured."""


@contextmanager
def within() -> Iterator[None]:
    """Make arrays that are none of the function itself that is captured: they are not stored."""
    trace = TRACE.get()
    if trace is None:
        yield
        return
    outer, trace.is_within = trace.is_within, True
    try:
        yield
    finally:
        trace.is_within = outer


def here(trace: Trace | None) -> Place | None:
    """Return the user's line that makes an array, and count it.

    Raises
    ------
    TooManyEquations
        If there are so many that there seems to be no end.
    """
    line = calling_line()
    if trace is not None and line is not None:
        trace.count += 1
        trace.lines[line] += 1
        if trace.count > MOST_ARRAYS:
            raise trace.unrolled(f"made {MOST_ARRAYS} arrays, and there is no end to it")
    return line


def definition_of(function: types.FunctionType, parameter: str | None = None) -> Span | None:
    """Return the line with ``def``, or the place of a parameter; None if there is no text."""
    try:
        source = read_source(function)
    except FrontendError:
        return None
    return source.span if parameter is None else source.parameter_span(parameter)


def loop_around(place: Place) -> Span | None:
    """Return the first line of the innermost loop that has a line in it, or else that line."""
    file, line = place
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return span_of_line(file, line)
    loops = (ast.For, ast.While, ast.ListComp, ast.GeneratorExp)
    found = [
        n.lineno
        for n in ast.walk(tree)
        if isinstance(n, loops) and n.lineno <= line <= (n.end_lineno or n.lineno)
    ]
    return span_of_line(file, max(found, default=line))
