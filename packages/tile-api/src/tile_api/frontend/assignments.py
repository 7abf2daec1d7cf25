"""What assignments mean: SSA names, stores to variables, aliases of buffers."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tile_api.frontend.activation import ActivationBase, OutOfScopeName, Unbound
from tile_api.frontend.builder import Frame
from tile_api.frontend.values import BufferValue, RegionReference, VarHandle, as_value, load, store
from tile_core.errors import FrontendTypeError, MutationError
from tile_core.ir.buffer import Region, Scope
from tile_core.ir.expr import AddressOf, Call, Const, Expr, Extent, Load, StringConst, Var
from tile_core.ir.node import walk
from tile_core.ir.operations import BINARY
from tile_core.records import dataclass

_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    **{op.value: computed for op, computed in BINARY.items()},
    "**": operator.pow,
    "@": operator.matmul,
}


@dataclass(frozen=True, slots=True)
class PendingVariable:
    """A newly allocated variable on its way through a chained or tuple assignment."""

    handle: VarHandle


def is_pure(expr: Expr) -> bool:
    """Whether the value depends on immutable names only: no memory, no calls."""
    return not any(isinstance(node, (Load, Call)) for node in walk(expr))


class Assignments(ActivationBase):
    """Bindings, stores and augmented assignments."""

    def bind(self, name: str, old: Any, value: Any) -> Any:
        """Return what `name` holds after ``name = value``.

        If `old` is a variable and `value` a number or expression, the assignment is a store.
        Otherwise the name is bound anew: to the value that an expression has now, to a
        newly allocated variable, or to whatever Python object it is.
        """
        if isinstance(value, PendingVariable):
            value = value.handle
            value.claimed = True
            self.note_binding(name)
            return value
        fresh = isinstance(value, VarHandle) and not value.claimed
        if isinstance(old, VarHandle) and not fresh and _is_scalar(value):
            old.store(value)
            return old
        if isinstance(old, RegionReference) and not fresh and _is_scalar(value):
            old.fill(value)
            return old
        if isinstance(value, OutOfScopeName):
            value.refuse()
        self._warn_rebinding(name, old, value)
        self.note_binding(name)
        if isinstance(value, Frame):
            return self.builder.enter_until_end(value, (name,))
        if isinstance(value, VarHandle):
            if fresh:
                value.claimed = True
                return value
            return self.freeze(name, value.__tile_expr__())
        if isinstance(value, Expr):
            return self.freeze(name, value)
        if isinstance(value, Region):
            return self._freeze_region(name, value)
        return value

    def _warn_rebinding(self, name: str, old: Any, value: Any) -> None:
        if name == "_" or isinstance(old, (Unbound, OutOfScopeName, VarHandle)) or old is value:
            return
        run_time = isinstance(old, Expr) or (isinstance(old, (int, float)) and _is_run_time(value))
        if run_time and _is_scalar(value):
            self.builder.warn(
                f"{name!r} is bound again: this makes a new value and does not change the old one;"
                f" declare `{name} = T.alloc_var(dtype)` to have a variable"
            )

    def freeze(self, name: str, value: Expr) -> Any:
        """Return a name for the value that `value` has at this point.

        Constants and names stand for themselves; an int32 constant becomes a Python int.
        Before the kernel, expressions of immutable names stay as they are, for use in shapes.
        """
        if isinstance(value, Const):
            is_int = str(value.dtype) == "int32"
            return int(value.value) if is_int else value
        if isinstance(value, (Var, StringConst)):
            return value
        if self.builder.launch is None and is_pure(value):
            return value
        if isinstance(value, AddressOf):  # what it points to stays in view
            fixed = (i if is_pure(i) else as_value(self.freeze(name, i)) for i in value.indices)
            return replace(value, indices=tuple(fixed))
        return self.builder.let(name, value)

    def _freeze_region(self, name: str, region: Region) -> Region:
        def fixed(extent: Extent) -> Extent:
            if isinstance(extent, int) or is_pure(extent):
                return extent
            result: Extent = self.freeze(name, extent)
            return result

        starts = tuple(fixed(s) for s in region.starts)
        extents = tuple(fixed(e) for e in region.extents)
        return replace(region, starts=starts, extents=extents)

    def hold(self, value: Any) -> Any:
        """Return the one right-hand side of a chained assignment."""
        return (
            PendingVariable(value) if isinstance(value, VarHandle) and not value.claimed else value
        )

    def item(self, wanted: None, value: Any, name: str | None) -> Any:
        """Return an element of a tuple or list display, with the value that it has now.

        `name` is the name it will be bound to, or None if it goes elsewhere.
        """
        if isinstance(value, VarHandle):
            if not value.claimed:
                return value if name is None else PendingVariable(value)
            return self.freeze(name or "value", value.__tile_expr__())
        if isinstance(value, Expr) and not is_pure(value):
            return self.freeze(name or "value", value)
        return value

    def put(self, number: int, target: Any, index: Any, value: Any) -> None:
        """Perform ``target[index] = value``."""
        self.builder.place = (self.table, number)
        if isinstance(value, PendingVariable):
            value = value.handle
        if isinstance(target, BufferValue):
            target[index] = value
        elif isinstance(target, Region):
            raise MutationError(
                f"the region {target.buffer.name!r} cannot be assigned to through an index",
                hint="index the buffer itself, or use T.copy or T.fill on the region",
            )
        elif isinstance(target, Expr):
            hint = "only buffers have elements: allocate one with T.alloc_local"
            if target.dtype.is_handle:
                hint = "make a tensor of the address: T.make_tensor(pointer, shape, dtype)"
            told = f"an element of a value of dtype {target.dtype} cannot be assigned to"
            raise MutationError(told, hint=hint)
        else:
            target[index] = value

    def get(self, number: int, target: Any, index: Any) -> Any:
        """Return ``target[index]``."""
        if isinstance(target, BufferValue):
            before = self.builder.place
            self.builder.place = (self.table, number)
            result = target[index]
            self.builder.place = before
            return result
        if isinstance(target, Region):
            raise FrontendTypeError(
                f"the region of {target.buffer.name!r} cannot be indexed again",
                span=self.table.span(number),
                hint="index the buffer itself",
            )
        if isinstance(target, Expr):
            raise FrontendTypeError(
                f"a value of dtype {target.dtype} cannot be indexed",
                span=self.table.span(number),
                hint="only buffers have elements; give all indices at once, as in A[i, j]",
            )
        return target[index]

    def aug(self, name: str, old: Any, symbol: str, value: Any) -> Any:
        """Return what `name` holds after ``name op= value``."""
        self.rd(name, old)
        if isinstance(old, BufferValue):
            raise MutationError(
                f"the whole buffer {old.name!r} cannot be changed by `{symbol}=`",
                hint=f"update elements in a loop: for i in T.Parallel(...): {name}[i] {symbol}= x",
            )
        if isinstance(old, Region):
            raise MutationError(
                f"the region {name!r} cannot be changed by `{symbol}=`",
                hint="update elements of the buffer in a T.Parallel loop",
            )
        if isinstance(old, VarHandle):
            old.store(_OPERATIONS[symbol](old, value))
            return old
        if isinstance(old, list) and symbol == "+":
            old += value
            return old
        return self.bind(name, old, _OPERATIONS[symbol](old, value))

    def aug_put(self, number: int, target: Any, index: Any, symbol: str, value: Any) -> None:
        """Perform ``target[index] op= value``."""
        self.builder.place = (self.table, number)
        if isinstance(target, BufferValue) and target.ndim == target.buffer.rank:  # of scalars
            before = load(target.buffer, index, self.builder.span)
            if isinstance(before, Region):
                raise MutationError(
                    f"a slice of {target.name!r} cannot be changed by `{symbol}=`",
                    hint="update elements in a T.Parallel loop",
                )
            result = _OPERATIONS[symbol](before, as_value(value, target.buffer.dtype))
            store(target.buffer, index, result)
        else:
            target[index] = _OPERATIONS[symbol](target[index], value)

    def set_attribute(self, target: Any, attribute: str, value: Any) -> None:
        """Perform ``target.attribute = value`` in a method of a trace-time helper class."""
        if isinstance(value, PendingVariable):
            value = value.handle
        setattr(target, attribute, self.bind(attribute, getattr(target, attribute, None), value))
        self.scopes[-1].bound.pop(attribute, None)

    def param(self, name: str, value: Any, passing: str) -> Any:
        """Return what the parameter `name` of a macro holds for the argument `value`.

        It is passed by "reference" (`T.Ref`), by "value", or "either": `T.Var` passes places by
        reference.
        """
        place = isinstance(value, (VarHandle, Load, Region))
        if passing == "reference" or (passing == "either" and place):
            return self._reference(name, value)
        if isinstance(value, VarHandle) and value.buffer.scope is not Scope.BARRIER:
            return self.freeze(name, value.__tile_expr__())
        if isinstance(value, Expr):
            return self.freeze(name, value)
        if isinstance(value, Region):
            return self._freeze_region(name, value)
        return value

    def _reference(self, name: str, value: Any) -> Any:
        if isinstance(value, VarHandle):
            return value
        if isinstance(value, Load):
            indices = tuple(i if is_pure(i) else self.builder.let(name, i) for i in value.indices)
            return VarHandle(value.buffer, indices, claimed=True)
        if isinstance(value, Region):
            fixed = self._freeze_region(name, value)
            return RegionReference(
                fixed.buffer, fixed.starts, fixed.extents, fixed.is_element, span=fixed.span
            )
        raise FrontendTypeError(
            f"the argument for the T.Ref parameter {name!r} must be an alloc_var, an element or "
            "a region",
            hint="pass a variable made by T.alloc_var, or an element such as A[i]",
        )

    def aug_value(self, old: Any, symbol: str, value: Any) -> Any:
        """Return ``old op value`` for an attribute of a trace-time helper object."""
        return _OPERATIONS[symbol](old, value)

    def unpackable(self, value: Any) -> Any:
        """Return `value` for unpacking, refusing what has no Python items."""
        if isinstance(value, (BufferValue, Region)):
            raise FrontendTypeError(
                f"the buffer {value.buffer.name!r} cannot be unpacked",
                hint="read its elements one by one",
            )
        return value


def _is_scalar(value: Any) -> bool:
    return isinstance(value, (int, float, Expr, VarHandle)) or (
        hasattr(value, "__float__") and not hasattr(value, "shape")
    )


def _is_run_time(value: Any) -> bool:
    return isinstance(value, VarHandle) or (
        isinstance(value, Expr) and not isinstance(value, Const)
    )
