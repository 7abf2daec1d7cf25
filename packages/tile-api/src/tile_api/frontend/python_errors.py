"""Python's own errors in a kernel, told as errors of the language."""

from __future__ import annotations

import inspect
import linecache
import re
import traceback

from tile_api.frontend import assignments
from tile_api.frontend.misspelt_names import unknown_name
from tile_api.frontend.values import BufferValue, VarHandle
from tile_core.errors import (
    FrontendTypeError,
    FrontendValueError,
    ScopeError,
    TileError,
)
from tile_core.ir.buffer import Region
from tile_core.ir.expr import Expr

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
