"""Which function it is that was tuned: the same in every process, another one when it changes.

A table outlives versions of the compiler and moves between machines, so a function is known by
what its author wrote: the program text without comments and layout, and the values and functions
around it that the text refers to. Values are known by what JSON can hold of them.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import json
import textwrap
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from enum import Enum
from functools import partial
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from tile_api.frozen_values import is_number_of_numpy

_DEPTH = 6
"""How far functions that call functions are followed."""

_PACKAGES = ("tile_api", "tile_core", "tilelang", "numpy", "torch", "builtins")


def identity_of(function: Callable[..., Any], options: Mapping[str, Any], tuned: set[str]) -> str:
    """Return 16 hexadecimal digits for a function and what it is compiled with.

    Where it is compiled for is no part of it, nor are defaults of parameters that are `tuned`.
    """
    kept = {k: v for k, v in options.items() if k in ("out_idx", "pass_configs", "compile_flags")}
    parts = [canonical(kept), *_parts(function, set(), 0)]
    defaults = {
        name: p.default
        for name, p in inspect.signature(function).parameters.items()
        if p.default is not p.empty and name not in tuned
    }
    parts.append(canonical({n: _stable(v) for n, v in defaults.items()}))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _parts(function: Callable[..., Any], seen: set[int], depth: int) -> Iterator[str]:
    function = inspect.unwrap(function)
    if id(function) in seen or depth > _DEPTH:
        return
    seen.add(id(function))
    yield _text(function)
    if not isinstance(function, FunctionType):
        return
    for name, value in sorted(_referred(function).items()):
        inner = _function_in(value)
        if inner is not None:
            yield name
            yield from _parts(inner, seen, depth + 1)
        elif _is_plain(value):
            yield f"{name}={canonical(_stable(value))}"


def _text(function: Callable[..., Any]) -> str:
    """Return a function's program text without comments, layout and decorators."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):  # typed in where nobody keeps the text
        code = getattr(function, "__code__", None)
        return code.co_code.hex() if isinstance(code, CodeType) else repr(type(function))
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            node.decorator_list = []
            node.args.defaults = [ast.Constant(None) for _ in node.args.defaults]
    is_one_of_many = sum(isinstance(node, ast.Lambda) for node in ast.walk(tree)) > 1
    if function.__name__ == "<lambda>" and is_one_of_many:  # the text is that of all of them
        return f"{ast.dump(tree)} {_code_text(function.__code__)}"
    return ast.dump(tree)


def _code_text(code: CodeType) -> str:
    """Return what code does as text; versions of Python have different ones."""
    inner = [_code_text(c) if isinstance(c, CodeType) else repr(c) for c in code.co_consts]
    return f"{code.co_code.hex()} {code.co_names} {code.co_varnames} {code.co_freevars} {inner}"


def _referred(function: FunctionType) -> dict[str, Any]:
    """Return the values around a function that its text names."""
    names: set[str] = set()
    codes = [function.__code__]
    while codes:
        code = codes.pop()
        names |= {*code.co_names}
        codes += [c for c in code.co_consts if isinstance(c, CodeType)]
    found = {n: function.__globals__[n] for n in names if n in function.__globals__}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        with suppress(ValueError):  # a cell that is not filled yet
            found[name] = cell.cell_contents
    return found


def _function_in(value: Any) -> Callable[..., Any] | None:
    """Return the user's function that a value is, or wraps: a macro, a factory."""
    for candidate in (value, getattr(value, "func", None), getattr(value, "orig_func", None)):
        if isinstance(candidate, FunctionType):
            package = str(candidate.__module__).partition(".")[0]
            return None if package in _PACKAGES else candidate
    return None


def _is_plain(value: Any) -> bool:
    if isinstance(value, ModuleType | type) or callable(value):
        return False
    if isinstance(value, list | tuple | set | frozenset):
        return len(value) < 256 and all(_is_plain(v) for v in value)
    if isinstance(value, Mapping):
        return len(value) < 256 and all(_is_plain(v) for v in value.values())
    # The text of data types tells them apart, and has no address in it.
    is_dtype = "dtype" in type(value).__name__.lower()
    return value is None or isinstance(value, bool | int | float | str) or is_dtype


def _stable(value: Any) -> Any:
    return str(value) if not isinstance(value, bool | int | float | str | None) else value


def plain(value: Any) -> Any:
    """Return a stand-in for a compile-time value that JSON can hold.

    Equal values have equal stand-ins in every process. Plain numbers, text, lists and
    dictionaries stay what they are.

    Examples
    --------
    >>> plain({"block": (64, 32), "policy": None})
    {'block': [64, 32], 'policy': None}
    """
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if is_number_of_numpy(value):
        return plain(value.item())
    if isinstance(value, Mapping):
        return {_name(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, set | frozenset):
        return sorted((plain(v) for v in value), key=canonical)
    if isinstance(value, partial):
        return {"partial": plain(value.func), "with": plain([value.args, value.keywords])}
    if isinstance(value, MethodType):
        return {"method": plain(value.__func__), "of": plain(value.__self__)}
    if isinstance(value, FunctionType) and "<" in value.__qualname__:  # a name of others, too
        told = f"{value.__module__}.{value.__qualname__}"
        return f"{told}#{identity_of(value, {}, set())}"
    if callable(value):
        return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', value)}"
    text = str(value)
    return type(value).__qualname__ if " at 0x" in text else text  # no place in memory is plain


def canonical(value: Any) -> str:
    """Return JSON that is equal exactly for values with equal stand-ins."""
    return json.dumps(plain(value), sort_keys=True, separators=(",", ":"))


def _name(key: Any) -> str:
    return str(key.value) if isinstance(key, Enum) else str(key)
