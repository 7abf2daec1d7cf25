"""The text, syntax tree and source spans of a function the user decorated."""

from __future__ import annotations

import ast
import inspect
import linecache
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import field
from traceback import walk_tb
from typing import Any

from tile_api.frontend.source_snapshot import lines_of
from tile_core.errors import FrontendError, Span, TileError
from tile_core.records import dataclass


@dataclass(frozen=True, slots=True)
class FunctionSource:
    """A function as it was written; the lines are those of the file, columns those of the line."""

    function: types.FunctionType
    tree: ast.FunctionDef
    file: str  # or notebook cell, or other name of `linecache`

    @property
    def span(self) -> Span:
        """The line with `def`."""
        return Span.of(self.tree, file=self.file)

    def parameter_span(self, name: str) -> Span:
        """Return the place of a parameter and its annotation."""
        args = self.tree.args
        starred = (a for a in (args.vararg, args.kwarg) if a is not None)
        for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs, *starred):
            if arg.arg == name:
                return Span.of(arg, file=self.file)  # type: ignore[arg-type]
        return self.span


def read_source(function: Callable[..., Any]) -> FunctionSource:
    """Return the source of `function`, as it was when the function was compiled.

    It is a plain `def`, and no decorator wrapped it: reading its text would leave that out.
    """
    if not isinstance(function, types.FunctionType):
        raise FrontendError(
            f"{_called(function)} is not a plain Python function",
            span=calling_span(),
            hint="decorate a function defined with `def`",
        )
    require_bare(function)
    file = function.__code__.co_filename
    lines, first = current_lines(function)
    if not lines:
        raise FrontendError(
            f"the source text of {function.__name__!r} cannot be found (looked for {file!r})",
            span=calling_span(),
            hint="define it in a file or a notebook cell, or register the text in linecache",
        )
    block = inspect.getblock(lines[first - 1 :])
    indented = block[0][:1].isspace()
    above = "\n" * (first - 1 - indented)  # so that lines are those of the file
    text = above + ("if True:\n" if indented else "") + "".join(block)
    tree: ast.stmt | None
    try:
        tree = ast.parse(text, filename=file).body[0]
    except SyntaxError:  # the block of a lambda is its line: that may begin a statement
        tree = None
    if isinstance(tree, ast.If):
        tree = tree.body[0]
    if not isinstance(tree, ast.FunctionDef) or function.__code__.co_name == "<lambda>":
        raise FrontendError(
            f"{function.__name__!r} is not defined by a plain `def`",
            span=span_of_line(file, first) if tree is None else Span.of(tree, file=file),
            hint="lambdas and `async def` cannot be kernels",
        )
    return FunctionSource(function, tree, file)


def require_bare(function: types.FunctionType) -> None:
    """Refuse what `functools.wraps` made: it stands for another one, whose text is not its own."""
    inner = inspect.unwrap(function)
    if inner is function:
        return
    code = function.__code__
    raise FrontendError(
        f"a decorator wrapped {function.__name__!r}: a kernel is traced from its text, and would "
        f"leave out what {getattr(code, 'co_qualname', code.co_name)!r} does",
        span=calling_span(),
        hint="remove the decorator between, or call what it does in the kernel as a T.macro",
    )


def current_lines(function: types.FunctionType) -> tuple[list[str], int]:
    """Return the lines of the file that has the text of `function`, and where that begins."""
    found = lines_of(function)
    if found is None:
        file = function.__code__.co_filename
        raise FrontendError(
            f"the text of {function.__name__!r} was edited after it was imported: {file} says "
            "something else now",
            span=calling_span(),
            hint="import it again: importlib.reload(module), or start the program again",
        )
    return found


def calling_span() -> Span | None:
    """Return the line of the user's program that is being executed: the first outside ours."""
    line = calling_line()
    return None if line is None else span_of_line(*line)


def calling_line() -> tuple[str, int] | None:
    """Return the file and the number of that line."""
    frame = _calling_frame()
    return None if frame is None else (frame.f_code.co_filename, frame.f_lineno)


def span_of_line(file: str, line: int) -> Span | None:
    """Return the place of a line without its indentation; None if its text is not to be had."""
    text = linecache.getline(file, line)
    indent = len(text) - len(text.lstrip())
    return Span(file, line, indent, len(text.rstrip())) if text.strip() else None


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warn at the user's line that called us, once for each such line as Python's filters say."""
    frame = _calling_frame()
    if frame is None:
        warnings.warn(message, category, stacklevel=2)
        return
    names = frame.f_globals
    warnings.warn_explicit(
        message, category, frame.f_code.co_filename, frame.f_lineno, names.get("__name__"),
        names.setdefault("__warningregistry__", {}),
    )  # fmt: skip


def _calling_frame() -> types.FrameType | None:
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and _is_ours(frame):
        if frame.f_globals["__name__"] == _COMMAND_LINE:
            return None  # what calls it is no program of the user's
        frame = frame.f_back
    return frame


_COMMAND_LINE = "tile_api.cli"


def raising_span(error: BaseException) -> Span | None:
    """Return the user's line that an error came from: the innermost, else the one that called."""
    frames = [(frame, line) for frame, line in walk_tb(error.__traceback__) if not _is_ours(frame)]
    if not frames:
        return calling_span()
    frame, line = frames[-1]
    return span_of_line(frame.f_code.co_filename, line)


@contextmanager
def placed() -> Iterator[None]:
    """Give errors without a place the user's line that called us."""
    try:
        yield
    except TileError as error:
        error.at(calling_span())
        raise


def _is_ours(frame: types.FrameType) -> bool:
    return str(frame.f_globals.get("__name__")).partition(".")[0] in _OURS


_OURS = frozenset(
    {"tile_api", "tile_core", "tile_launch", "tile_nn", "functools", "contextlib", "numpy", "torch"}
)
"""NumPy stands between operators of captured arrays and us."""


def _called(thing: object) -> str:
    name = getattr(thing, "__name__", None)
    return f"{type(thing).__name__} {name if name is not None else thing!r}"


@dataclass(slots=True)
class SpanTable:
    """The marked places of one function; spans are computed when first asked for."""

    file: str
    nodes: list[ast.expr | ast.stmt] = field(default_factory=list)
    hints: list[str | None] = field(default_factory=list)
    _spans: dict[int, Span] = field(default_factory=dict)

    def mark(self, node: ast.expr | ast.stmt, hint: str | None = None) -> int:
        """Remember a place, and the name its value will get; return its number."""
        self.nodes.append(node)
        self.hints.append(hint)
        return len(self.nodes) - 1

    def span(self, number: int) -> Span:
        """Return the place marked as `number`."""
        if number not in self._spans:
            self._spans[number] = Span.of(self.nodes[number], file=self.file)
        return self._spans[number]


def evaluate_annotations(
    function: Callable[..., Any], *, leave_unknown: bool = False
) -> dict[str, Any]:
    """Return the annotations of `function` as objects.

    Strings (from ``from __future__ import annotations``) are evaluated with the globals, the
    closure and, since names used only in annotations are in no closure, the local variables
    of the functions that are being executed around the definition.

    Parameters
    ----------
    leave_unknown
        Whether a string with a name that is not known stays one.
    """
    annotations: dict[str, Any] = dict(getattr(function, "__annotations__", {}))
    texts = {n: a for n, a in annotations.items() if type(a) is str}  # a DType is no text
    if not texts:
        return annotations
    scope = _surrounding_locals(function)
    globals_ = getattr(function, "__globals__", {})
    for name, text in texts.items():
        try:
            annotations[name] = _evaluate(text, globals_, scope, function, name)
        except FrontendError as error:
            if not leave_unknown or not isinstance(error.__cause__, NameError):
                raise
    return annotations


def _evaluate(
    text: str,
    globals_: dict[str, Any],
    scope: dict[str, Any],
    function: Callable[..., Any],
    name: str,
) -> Any:
    try:
        return eval(text, globals_, scope)
    except TileError as error:
        error.span = _parameter_span(function, name)
        raise
    except Exception as error:
        raise FrontendError(
            f"the annotation of parameter {name!r} of {function.__name__!r} cannot be "
            f"evaluated: {error}",
            span=_parameter_span(function, name),
            hint="annotate with names that are visible where the function is defined",
        ) from error


def _parameter_span(function: Callable[..., Any], name: str) -> Span | None:
    if not isinstance(function, types.FunctionType):
        return None
    return read_source(function).parameter_span(name)


def _surrounding_locals(function: Callable[..., Any]) -> dict[str, Any]:
    """Collect the variables visible at the definition, innermost first to win."""
    file = getattr(getattr(function, "__code__", None), "co_filename", None)
    scope: dict[str, Any] = {}
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename == file and frame.f_code.co_name != "<module>":
            scope = {**frame.f_locals, **scope}
        frame = frame.f_back
    closure = getattr(function, "__closure__", None) or ()
    names = function.__code__.co_freevars if closure else ()
    for name, cell in zip(names, closure, strict=True):
        try:
            scope[name] = cell.cell_contents
        except ValueError:  # not yet assigned
            continue
    return scope


def names_outside(function: types.FunctionType) -> dict[str, Any]:
    """Return what the names that `function` does not bind itself stand for where it is defined."""
    return {**function.__globals__, **_surrounding_locals(function)}
