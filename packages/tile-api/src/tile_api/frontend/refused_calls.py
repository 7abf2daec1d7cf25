"""Calls that Python refused, told as errors of the language."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from typing import Any

from tile_api.frontend.python_errors import owner_of, plain
from tile_api.frontend.values import BufferValue
from tile_core.errors import FrontendError, FrontendTypeError, FrontendValueError
from tile_core.ir.buffer import Region

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

    Parameters
    ----------
    at_run_time
        Whether an argument is a value that only the running kernel has. Functions that compute
        take none, whatever their parameters are.
    """
    if at_run_time and (_library(function) in _LIBRARIES or _is_of_c(function)):
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


def _is_of_c(function: Any) -> bool:
    return inspect.isbuiltin(function)


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
