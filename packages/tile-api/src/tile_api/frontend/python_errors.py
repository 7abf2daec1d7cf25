"""Python's own errors in a kernel, told as errors of the language."""

from __future__ import annotations

import inspect
import linecache
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tile_api.frontend import assignments
from tile_api.frontend.builder import here
from tile_api.frontend.values import BufferValue, VarHandle
from tile_core.errors import (
    FrontendError,
    FrontendTypeError,
    FrontendValueError,
    ScopeError,
    TileError,
    UnknownName,
)
from tile_core.ir.buffer import Region
from tile_core.ir.expr import Expr
from tile_core.spelling import nearest

_INDEXED = "a run-time value indexes tensors only: give the numbers to the kernel as a parameter"
_KINDS: dict[type, str] = {BufferValue: "buffer", VarHandle: "variable", Region: "region"}


def explained(error: Exception, file: str) -> TileError | None:
    """Return `error` as an error of the language, without a place, or None to let it pass.

    Only what the user's own lines in `file` raised is explained, and not what a `raise`
    statement there says: that is the user's message.
    """
    frames = traceback.extract_tb(error.__traceback__)
    last = frames[-2] if len(frames) > 1 and _is_indexing(frames[-1]) else frames[-1]
    line = linecache.getline(last.filename, last.lineno or 0).strip()
    if last.filename != file or line.startswith("raise"):
        return None
    match error:
        case NameError():
            hint = "define the name before the kernel that uses it"
            return ScopeError(str(error), hint=hint)
        case AttributeError() if error.name is not None:
            owner = owner_of(error.obj)
            return unknown_name(owner, error.name, [n for n in dir(error.obj) if n[:1] != "_"])
        case TypeError():
            hint = "check the types of the operands"
            if "**" in str(error):
                hint = "use T.pow(x, y)"
            elif "as an integer" in str(error):
                hint = "loop over T.serial, or make the helper function a @T.macro"
            elif "__format__" in str(error):
                text = "a run-time value has no digits while the kernel is traced"
                return FrontendTypeError(text, hint="print it with T.print(x, msg=...)")
            elif "indices must be" in str(error):
                hint = _INDEXED
            return FrontendTypeError(plain(str(error)), hint=hint)
        case ValueError() if "unpack" in str(error):
            hint = "give as many names as there are values; n extents have n indices"
            return FrontendValueError(plain(str(error)), hint=hint)
        case IndexError() if "valid indices" in str(error):
            return FrontendTypeError("an array of Python has no run-time index", hint=_INDEXED)
        case ValueError() | ArithmeticError() | LookupError():
            text = _no_key(error) if isinstance(error, KeyError) else str(error)
            hint = "this is computed by Python while the kernel is traced: change its operands"
            return FrontendValueError(plain(text), hint=hint)
    return None


def _no_key(error: KeyError) -> str:
    key = error.args[0] if error.args else ""
    return f"there is no key {owner_of(key) if isinstance(key, Expr) else repr(key)}"


def _is_indexing(frame: traceback.FrameSummary) -> bool:
    """Whether the error is that of a Python object that was indexed on the user's behalf."""
    return frame.filename == assignments.__file__ and frame.name in ("get", "put", "aug_put")


def owner_of(value: object) -> str:
    """Return `value` as the subject of a sentence."""
    if isinstance(value, BufferValue):
        return f"the buffer {value.name!r}"
    if isinstance(value, VarHandle):
        return f"the variable {value.name!r}"
    if isinstance(value, Region):
        return f"a region of {value.buffer.name!r}"
    if isinstance(value, Expr):
        return f"a value of dtype {value.dtype}"
    if inspect.ismodule(value):
        return f"the module {value.__name__!r}"
    return f"an object of type {type(value).__name__}"


def plain(message: str) -> str:
    """Say "buffer" and "run-time value" where Python names our classes."""
    names = {cls.__name__: word for cls, word in _KINDS.items()}
    names |= {cls.__name__: "run-time value" for cls in _subclasses(Expr)}

    def word(match: re.Match[str]) -> str:
        known = names.get(match[1] or match[2])
        return match[0] if known is None else f"a {known}"

    return re.sub(r"'(\w+)'(?: object)?|(?<=, not )(\w+)$", word, message)


def _subclasses(cls: type) -> list[type]:
    direct: list[type] = cls.__subclasses__()
    return [cls, *direct, *(c for d in direct for c in _subclasses(d))]


_LANGUAGE = "tile_api.language"
_OURS = ("tile_api", "tile_core")
_LIBRARIES = frozenset({"cmath", "jax", "math", "numpy", "scipy", "torch"})
"""Packages whose functions compute with numbers and arrays."""


def refused_call(
    function: Any,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    error: Exception,
    *,
    at_run_time: bool,
) -> FrontendError | None:
    """Return `error` of a call as one of the language; None if lines of the user's made it.

    With `at_run_time` an argument is a value that only the running kernel has. Functions that
    compute take none, whatever their parameters are.
    """
    if at_run_time and (_library(function) in _LIBRARIES or inspect.isbuiltin(function)):
        return _needs_numbers(function)
    trace = error.__traceback__
    if isinstance(error, TypeError) and trace is not None and trace.tb_next is None:
        return _unfit(function, error)
    if not isinstance(error, (TypeError, ValueError)) or not _is_ours(function):
        return None
    if not _fits(function, args, kwargs):
        return _unfit(function, error)
    kind = FrontendTypeError if isinstance(error, TypeError) else FrontendValueError
    name = _name(function)
    return kind(f"{name}: {plain(str(error))}", hint=f"call it as {name}{call_form(function)}")


def _unfit(function: Any, error: Exception) -> FrontendError:
    """Return the error for a call whose arguments do not fit the parameters of `function`."""
    if not callable(function):
        hint = "check what the name stands for"
        if isinstance(function, (BufferValue, Region)):
            hint = "index with square brackets, as in A[i, j]"
        return FrontendTypeError(f"{owner_of(function)} cannot be called", hint=hint)
    name = _name(function)
    built = getattr(getattr(function, "build", function), "__qualname__", "")
    message = plain(str(error).replace(f"{built}()", f"{name}()", 1))
    return FrontendTypeError(message, hint=f"call it as {name}{call_form(function)}")


def _name(function: Any) -> str:
    written = str(getattr(function, "__qualname__", type(function).__name__))
    name = written.rpartition("<locals>.")[2]
    return f"T.{name}" if str(_home(function)).startswith(_LANGUAGE) else name


def _home(function: Any) -> str:
    return str(getattr(function, "__module__", None) or "")


def _is_ours(function: Any) -> bool:
    return _home(function).partition(".")[0] in _OURS


def _fits(function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except TypeError:
        return False
    except ValueError:  # it does not tell its parameters
        return True
    return True


def _library(function: Any) -> str:
    """Return the package of `function`; NumPy's own functions are objects that tell theirs."""
    homes = (type(function).__module__, _home(function))
    packages = [home.partition(".")[0] for home in homes]
    return next((p for p in packages if p in _LIBRARIES), packages[-1])


def _needs_numbers(function: Any) -> FrontendError:
    """Return the error for a call of a library's function with a run-time value."""
    name, library = str(getattr(function, "__name__", type(function).__name__)), _library(function)
    told = f"{library}.{name}" if library in _LIBRARIES else name
    hint = "use a function of the language, such as T.exp(x)"
    if hasattr(sys.modules.get(_LANGUAGE), name):
        hint = f"use T.{name}"
    return FrontendTypeError(f"{told}() computes now and cannot take a run-time value", hint=hint)


def call_form(function: Callable[..., Any]) -> str:
    """Return the parameters of a function as a call shows them: ``(src, dst, ...)``."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return "(...)"
    kinds = inspect.Parameter
    names = [
        f"*{p.name}" if p.kind is kinds.VAR_POSITIONAL else p.name
        for p in parameters
        if p.default is kinds.empty and p.kind not in (kinds.VAR_KEYWORD, kinds.KEYWORD_ONLY)
    ]
    names += [f"{p.name}=..." for p in parameters if p.default is not kinds.empty]
    return f"({', '.join(names)})"


def unknown_name(
    owner: str, name: str, known: Iterable[str], prefix: str = "", instead: str | None = None
) -> UnknownName:
    """Return the error for a name that `owner` does not have.

    `prefix` is what the user writes before it, such as ``"T."``; `instead` what to use, if known.
    """
    is_asked_by_tools = name.startswith("_")  # Python itself, or pytest of all that it meets
    alike = None if is_asked_by_tools else nearest(name, sorted(known), 0.7)
    guess = f"did you mean {prefix}{alike}?" if alike else "dir(...) lists what there is"
    return UnknownName(
        f"{owner} has no {prefix + name!r}",
        span=None if is_asked_by_tools else here(),
        hint=instead or guess,
    )
