"""`T.macro`, `T.inline` and `T.meta_class`: functions expanded where they are called."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import update_wrapper
from typing import Any

from tile_api.frontend.builder import active, here
from tile_api.frontend.function import user_errors
from tile_api.frontend.python_errors import call_form
from tile_api.frontend.rewrite import rewrite_function
from tile_api.frontend.source import read_source
from tile_api.frontend.statements import activation_factory
from tile_core.errors import ControlFlowError, FrontendTypeError, Note, ScopeError, TileError
from tile_core.records import Uncopied

_MAX_DEPTH = 100


class Ref:
    """Annotation of a macro parameter that stands for the argument's place.

    The argument is an `alloc_var` or an element such as ``A[i]``; assigning to the parameter
    stores there.
    """

    passed_by = "reference"


class Macro(Uncopied):
    """A function whose body is traced at each call.

    Buffers are passed by reference, scalars by value, Python objects as they are; names
    inside are the macro's own. See `macro`.
    """

    def __init__(self, function: Callable[..., Any], kind: str = "macro") -> None:
        source = read_source(function)
        self.source = source
        self.kind = kind
        self.rewritten = rewrite_function(source, kind=kind, references=_references(function))
        self._traced = self.rewritten.build(activation_factory(self.rewritten.table, kind))
        update_wrapper(self, function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Trace the body here and return what it returns.

        Raises
        ------
        ScopeError
            Outside a kernel.
        FrontendTypeError
            If the arguments do not fit the parameters.
        ControlFlowError
            In an operand of `and`, `or` or a conditional expression, or without end.
        """
        builder = active()
        name = self.source.function.__name__
        if builder is None:
            raise ScopeError(
                f"the macro {name!r} can only be called inside a kernel",
                span=here(),
                hint="call it in the body of a @T.prim_func or an eager @tile.jit function",
            )
        if builder.operand_of is not None:
            raise ControlFlowError(
                f"the macro {name!r} is called in an operand of {builder.operand_of}",
                span=builder.span,
                hint="call it in a statement before, and use its result here",
            )
        if builder.depth >= _MAX_DEPTH:
            raise ControlFlowError(
                f"the macro {name!r} calls itself without end",
                span=builder.span,
                hint="macros are expanded while tracing; recursion must end on Python values",
            )
        place, hint = builder.place, builder.hint
        where = builder.span
        self._check_arguments(args, kwargs)
        builder.depth += 1
        try:
            with user_errors(builder, self.source.file):
                result = self._traced(*args, **kwargs)
        except TileError as error:
            seen = {error.span, *(n.span for n in error.notes)}
            if where is not None and where not in seen:
                error.notes += (Note(f"while expanding {name!r} called here", where),)
            raise
        builder.depth -= 1
        builder.place, builder.hint = place, hint
        return result

    def _check_arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        function = self.source.function
        try:
            inspect.signature(function).bind(*args, **kwargs)
        except TypeError as error:
            raise FrontendTypeError(
                f"the arguments of the macro {function.__name__!r} do not fit: {error}",
                span=here(),
                notes=(Note("it is defined here", self.source.span),),
                hint=f"call it as {function.__name__}{call_form(function)}",
            ) from None

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """Bind to an instance, as functions do."""
        if instance is None:
            return self
        return _BoundMacro(self, instance)

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Return what `pickle` writes: the name, as of functions."""
        from tile_api.pickling import reduced  # few programs pickle

        return reduced(self, self.source.function, self.source.function, self.kind)

    def __repr__(self) -> str:
        return f"<macro {self.source.function.__name__}>"


class _BoundMacro:
    """A macro defined as a method, with its instance."""

    __slots__ = ("instance", "macro")

    def __init__(self, macro: Macro, instance: object) -> None:
        self.macro, self.instance = macro, instance

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.macro(self.instance, *args, **kwargs)


def _references(function: Callable[..., Any]) -> dict[str, str]:
    """Return how parameters are passed that are not passed by value.

    By reference those annotated with `T.Ref`; those annotated with `T.Var`, its older name that
    programs also use for values, if the argument is a place.
    """
    spelt = {"T.Ref": "reference", "Ref": "reference", "T.Var": "either"}
    passed = {}
    for name, annotation in getattr(function, "__annotations__", {}).items():
        if isinstance(annotation, type):
            passed[name] = vars(annotation).get("passed_by")
        elif isinstance(annotation, str):
            passed[name] = spelt.get(annotation)
    return {name: how for name, how in passed.items() if isinstance(how, str)}


def macro(func: Callable[..., Any] | None = None, *, hygienic: bool = True) -> Any:
    """Make `func` a macro: its statements are traced where it is called.

    Scalars and expressions are passed by value (evaluated once), buffers by reference, and
    other Python objects as they are. A parameter annotated `T.Ref` stands for the place that
    is passed. Names are the macro's own at each call. Any value can be returned, from the
    end of the function.

    Parameters
    ----------
    hygienic
        Accepted for compatibility: names are always the macro's own.
    """
    if func is None:
        return macro
    return Macro(func)


def inline(func: Callable[..., Any]) -> Macro:
    """Make a method of a trace-time helper class part of the kernel that calls it.

    Like `macro`, and attributes of objects can be assigned: an attribute that holds an
    `alloc_var` is stored to, any other is replaced.
    """
    return Macro(func, "inline")


def meta_class(cls: type | None = None) -> Any:
    """Make a class whose methods are traced where they are called.

    Every plain method defined in the class body becomes an `inline` function, except those
    Python calls by itself other than `__init__`. Written with or without brackets.
    """
    if cls is None:
        return meta_class
    from types import FunctionType

    for name, member in list(vars(cls).items()):
        special = name.startswith("__") and name.endswith("__") and name != "__init__"
        if isinstance(member, FunctionType) and not special:
            setattr(cls, name, _as_method(inline(member)))
    return cls


def _as_method(traced: Macro) -> Callable[..., Any]:
    """Return a plain function that expands `traced`, so that Python can bind it."""

    def method(*args: Any, **kwargs: Any) -> Any:
        if active() is None:
            return traced.source.function(*args, **kwargs)
        return traced(*args, **kwargs)

    update_wrapper(method, traced.source.function)
    return method


__all__ = ["Macro", "Ref", "inline", "macro", "meta_class"]
