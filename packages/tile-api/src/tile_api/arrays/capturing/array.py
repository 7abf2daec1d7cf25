"""Arrays without elements: a shape, a type, and the element at given indices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from itertools import count
from operator import attrgetter
from operator import index as as_int
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from tile_api.arrays.capturing.element_types import element_type_of
from tile_api.arrays.equations.dims import told
from tile_api.arrays.equations.expressions import Expr, Indices, cast, computed_in
from tile_api.arrays.equations.places import TRACE, here
from tile_api.arrays.equations.recurrence import DEPTH
from tile_api.arrays.equations.sizes import counted
from tile_api.frontend.source import calling_span, span_of_line
from tile_core.dtypes import DType
from tile_core.errors import ArrayShapeError, ElementUnknown, ImmutableArray, Note, Span

if TYPE_CHECKING:
    from typing_extensions import Never


class Names(Protocol):
    """What functions of NumPy do with arrays: `tile_api.arrays.capturing.numpy_names`."""

    FUNCTIONS: dict[str, Callable[..., Array]]

    def call_ufunc(
        self, ufunc: Any, method: str, inputs: Sequence[Any], keywords: dict[str, Any]
    ) -> Any:
        """Return what a ufunc, or a method of one, gives."""

    def call_function(self, function: Any, args: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        """Return what any other function gives."""

    def call_torch(self, function: Any, args: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        """Return what a function of torch gives."""

    def method(self, array: Array, name: str) -> Callable[..., Any]:
        """Return a method of arrays."""

    def size_of(self, x: Array) -> Any:
        """Return how many elements there are."""

    def taken(self, x: Array, key: Any) -> Array:
        """Return what stands in brackets."""

    def changed(self, ufunc: Any, x: Array, other: Any) -> Array:
        """Return what takes the place of `x` after ``x += other``."""

    def assign(self, x: Array, key: Any, value: Any) -> None:
        """Let `x` be what it is after ``x[key] = value``."""


NAMES: ContextVar[Names] = ContextVar("names")
"""Set while a function is captured: what arrays do is known above them."""


_SERIALS = count()


def _names() -> Names:
    names = NAMES.get(None)
    if names is None:
        raise left_over()
    return names


def left_over() -> ElementUnknown:
    """Return the error of an array that outlived the function that was captured with it."""
    return ElementUnknown(
        "an array is used that was there while another function was captured: it has no elements",
        span=calling_span(),
        hint="return it from the function, and use what a call returns",
    )


def _fixed(name: str, hint: str) -> Any:
    """Return an attribute that users read."""

    def refuse(x: Array, _: Any) -> Never:
        raise ImmutableArray(
            f"the {name} of an array is assigned to: arrays are values here",
            span=calling_span(),
            hint=hint,
        )

    return property(attrgetter(f"_{name}"), refuse)


def _size(given: Any) -> int:
    """Return a size that may be of one of NumPy's types."""
    try:
        size = as_int(given)
    except TypeError:
        size = -1
    if size < 0:
        raise ArrayShapeError(f"a dimension of {given} elements", span=calling_span())
    return size


class Array(NDArrayOperatorsMixin):
    """What stands for an array while a function is captured.

    Parameters
    ----------
    shape
        Sizes, `Dim` where a dimension has a name.
    dtype
        What NumPy would store elements as.
    at
        Returns the element at indices, as it is computed. Asked once for the same indices.
    name
        Of the parameter that it is.
    base
        Of what it is a view.
    key
        What stood in the brackets that made the view, in a tuple; None if it was made otherwise.
    newest
        What it is after an assignment, under all its names.
    is_changed, changed_at
        Whether it may not be used any more, and where it was assigned to, if the line is known.
    definition
        Returns the place of the parameter.

    Attributes
    ----------
    serial
        The order of creation.
    number
        What tells it from others whenever the function is captured; None if it may not be stored.
    """

    __array_priority__ = 1000
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self, shape: Sequence[Any], dtype: DType, at: Callable[[Indices], Expr], *,
        name: str | None = None, definition: Callable[[], Span | None] | None = None,
    ) -> None:  # fmt: skip
        self._shape = tuple([n if isinstance(n, int) and n >= 0 else _size(n) for n in shape])
        self._dtype = element_type_of(dtype)
        self.name = name
        self.base: Array | None = None
        self.key: tuple[Any] | None = None
        self.newest: Array | None = None
        self.is_changed = False
        self.changed_at: Span | None = None
        self._trace = TRACE.get()
        self._definition = definition
        self._place = here(self._trace)
        self._at = at
        self._known: dict[Indices, Expr] = {}
        self.serial = next(_SERIALS)
        trace = self._trace
        is_own = trace is not None and not trace.is_within and DEPTH.get() == 1
        self.number = next(trace.numbers) if trace is not None and is_own else None
        if trace is not None and trace.materialised is not None:
            trace.materialised.begin(self)

    def at(self, indices: Indices) -> Expr:
        """Return the element at `indices`."""
        found = self._known.get(indices)
        if found is None:
            trace = self._trace
            stored = None if trace is None else trace.materialised
            found = self.computed_at(indices) if stored is None else stored.element(self, indices)
            self._known[indices] = found
            if trace is not None and self._place is not None:
                trace.places.setdefault(found, self._place)
        return found

    def forget(self) -> None:
        """Ask anew for elements that were asked for."""
        self._known.clear()

    def computed_at(self, indices: Indices) -> Expr:
        """Return the element at `indices`, computed even if the array is stored."""
        trace = self._trace
        if trace is None:
            return self._at(indices)
        outer, trace.is_within = trace.is_within, True
        try:
            return self._at(indices)
        finally:
            trace.is_within = outer

    def usable(self) -> Array:
        """Return what the array is now, which has to be of the function that is being captured.

        What was assigned to is what it was made; a view of it is taken again, if brackets made it,
        and may not be used if not: NumPy has views and copies there.
        """
        if self._trace is not TRACE.get():
            raise left_over()
        at = self
        while at.newest is not None:
            at = at.newest
        if at.is_changed:
            raise _changed(at.changed_at)
        if at.base is None:
            return at
        base = at.base.usable()
        if base is at.base:
            return at
        if at.key is None:
            old = at.base
            while old.changed_at is None and old.base is not None:
                old = old.base
            raise _changed(old.changed_at)
        at.newest = _names().taken(base, *at.key)
        return at.newest

    def made_at(self) -> Span | None:
        """Return the user's line that made it, or the place of the parameter."""
        if self._definition is not None:
            return self._definition()
        return None if self._place is None else span_of_line(*self._place)

    def stand_for(self, at: Callable[[Indices], Expr]) -> None:
        """Let other expressions stand for the same elements from now on."""
        self._at, self._known = at, {}

    def read_as(self, dtype: DType, indices: Indices) -> Expr:
        """Return the element at `indices` as an operand of an operation in `dtype`.

        Promotion between floats of up to 32 bits rounds nothing: all are computed in float32.
        """
        found = self.at(indices)
        both_are_floats = dtype.is_float and found.dtype.is_float
        return cast(found, computed_in(dtype) if both_are_floats else dtype)

    shape: tuple[int, ...] = _fixed("shape", "x.reshape(...) returns another array")
    dtype: DType = _fixed("dtype", "x.astype(...) returns another array")
    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: _names().size_of(self))

    @property
    def T(self) -> Array:
        """The array with its dimensions reversed."""
        return _call("transpose", self)

    @property
    def mT(self) -> Array:
        """The array with its last two dimensions exchanged."""
        return _call("swapaxes", self, -1, -2)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        """Capture one of NumPy's element-wise functions, or a reduction with it."""
        return _names().call_ufunc(ufunc, method, present(inputs), present(keywords))

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Capture any other function of NumPy."""
        return _names().call_function(func, args, kwargs)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Capture a function of torch."""
        return _names().call_torch(func, present(args), present(kwargs or {}))

    def _in_place(ufunc: Any) -> Callable[[Array, Any], Array]:
        """Return an operator such as ``+=``."""
        return lambda self, other: _names().changed(ufunc, self, other)

    __iadd__, __isub__, __imul__ = map(_in_place, (np.add, np.subtract, np.multiply))
    __itruediv__, __ifloordiv__ = map(_in_place, (np.divide, np.floor_divide))
    __imod__, __ipow__, __imatmul__ = map(_in_place, (np.remainder, np.power, np.matmul))
    __iand__, __ior__, __ixor__ = map(_in_place, (np.bitwise_and, np.bitwise_or, np.bitwise_xor))
    __ilshift__, __irshift__ = map(_in_place, (np.left_shift, np.right_shift))

    def __getitem__(self, key: Any) -> Array:
        """Return a view, or elements that arrays of indices choose."""
        return _names().taken(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        """Let other elements stand under its names: `tile_api.arrays.capturing.item_assignment`."""
        _names().assign(self, key, value)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return a method: NumPy's function of the same name."""
        return _names().method(self.usable(), name)

    def __len__(self) -> int:
        if not self.shape:
            raise ArrayShapeError("an array of no dimensions has no length", span=calling_span())
        return counted(self.shape[0])

    def __iter__(self) -> Any:
        return iter([self[k] for k in range(len(self))])

    def __bool__(self) -> Never:
        raise _unknown(
            "the truth of an array", "np.where chooses element by element, & and | join conditions"
        )

    def __float__(self) -> Never:
        raise _unknown("an element of an array", "keep it an array of no dimensions")

    __int__ = __index__ = __complex__ = __float__

    def item(self, *_: Any) -> Never:
        """Refuse: there is no element yet."""
        raise _unknown("an element of an array", "keep it an array of no dimensions")

    tolist = __round__ = __trunc__ = __floor__ = __ceil__ = item

    def __array__(self, *_: Any, **__: Any) -> Never:
        """Refuse to become an array of NumPy's."""
        raise _unknown(
            "an element of an array",
            "NumPy's functions take captured arrays; np.take(table, x, axis=0) is table[x]",
        )

    def __delitem__(self, key: Any) -> Never:
        """Refuse: the size of an array is fixed."""
        raise ImmutableArray(
            "an element of an array is deleted: arrays are values here",
            span=calling_span(), hint="np.delete, or np.concatenate, makes a new array",
        )  # fmt: skip

    def __format__(self, spec: str) -> str:
        """Return shape and type; a number of digits is asked of elements."""
        return repr(self) if not spec else self.item()

    def __repr__(self) -> str:
        """Return shape and type."""
        name = "array" if self.name is None else f"{self.name}, an array"
        return f"<{name} of {self.dtype}, shape {told(self.shape)}; computed in a kernel>"


def _changed(where: Span | None) -> ImmutableArray:
    return ImmutableArray(
        "an array is used that was changed in place under another name: arrays are values here",
        span=calling_span(),
        notes=() if where is None else (Note("it is changed here", where),),
        hint="make a new array there: y = x + ..., or x.copy()",
    )


def present(x: Any) -> Any:
    """Return arguments in which arrays are what they are now: they may be assigned to later."""
    if isinstance(x, Array):
        return x.usable()
    if isinstance(x, (tuple, list)) and type(x) in (tuple, list):
        return type(x)(map(present, x))
    return {key: present(value) for key, value in x.items()} if type(x) is dict else x


def _call(name: str, x: Array, *args: Any) -> Array:
    made = _names().FUNCTIONS[name](x.usable(), *args)
    made.base = x.usable()
    return made


def _unknown(what: str, hint: str) -> ElementUnknown:
    return ElementUnknown(
        f"{what} is known only when the kernel runs, and Python asks for it now",
        span=calling_span(),
        hint=f"{hint}; or decide outside of the function",
    )
