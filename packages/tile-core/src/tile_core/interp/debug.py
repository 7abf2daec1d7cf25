"""``breakpoint()`` inside a kernel: a debugger whose locals are the user's names."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from tile_core.errors import Span
from tile_core.interp import regions
from tile_core.interp.execution_state import Lanes
from tile_core.interp.expressions import evaluate
from tile_core.interp.values import decode
from tile_core.ir.buffer import Buffer, Scope, whole
from tile_core.ir.expr import Expr
from tile_core.ops.control import Breakpoint


def breakpoint_(op: Breakpoint, lanes: Lanes) -> None:
    """Stop here: values are numbers, or arrays over the lanes that run together."""
    names = {
        name: _value(value, lanes, op) for name, value in zip(op.names, op.values, strict=True)
    }
    debugger = lanes.machine.options.debugger
    if debugger is not None:
        debugger(names, op.span)
    else:
        open_debugger(names, op.span)


def _value(value: Expr | Buffer, lanes: Lanes, op: Breakpoint) -> Any:
    if isinstance(value, Buffer):
        return _contents(value, lanes, op)
    found = evaluate(value, lanes)
    return found[0].item() if found.shape == (1,) else found


def _contents(buffer: Buffer, lanes: Lanes, op: Breakpoint) -> Any:
    """Return a copy of a buffer's elements; private ones of many lanes as their raw values."""
    place = lanes.place(buffer)
    if not isinstance(place.base, int) and len(place.base) > 1:
        steps = np.zeros(1, np.int64)
        for extent, stride in zip(place.shape, place.strides, strict=True):
            steps = (steps[:, None] + np.arange(extent) * stride).ravel()
        offsets = place.base[:, None] + steps
        values = decode(place.storage.get(offsets, buffer.dtype), buffer.dtype)
        return values.reshape(-1, *place.shape)
    where = regions.box(whole(buffer), lanes, op)
    values = decode(place.storage.get(where.offsets, buffer.dtype), buffer.dtype)
    return values[0].item() if buffer.scope is Scope.VAR else values


def open_debugger(names: dict[str, Any], span: Span | None) -> None:
    """Call `sys.breakpointhook` from a frame that looks like the user's line."""
    file, line = ("<kernel>", 2) if span is None else (span.file, max(2, span.line))
    text = "\n" * (line - 2) + "__stop_here__()\npass"
    scope = {"__stop_here__": sys.breakpointhook, "__name__": "__kernel__"}
    exec(compile(text, file, "exec"), scope, dict(names))
