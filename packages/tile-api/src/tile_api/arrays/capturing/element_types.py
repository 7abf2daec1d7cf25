"""The type of elements as code written for NumPy asks for it."""

from __future__ import annotations

from functools import cache
from typing import Any

from tile_core.dtypes import FORMATS, DType, Kind


class ElementType(DType):
    """A `DType` that equals what NumPy's `dtype` equals, and has its names.

    Functions decide by ``x.dtype == np.float32`` and ``x.dtype.kind == "f"``: a type that differs
    from all of these would take the wrong branch without a word.
    """

    __slots__ = ()
    __hash__ = str.__hash__

    def __new__(cls, name: str) -> ElementType:
        """Return the type spelt `name`."""
        self: ElementType = super().__new__(cls, name)  # type: ignore[assignment]
        self.is_int = self.facts.kind in (Kind.INT, Kind.UINT)
        self.is_float = self.facts.kind is Kind.FLOAT
        return self

    def __eq__(self, other: object) -> bool:
        """Tell whether NumPy takes both for one type."""
        if isinstance(other, DType) or (isinstance(other, str) and other in FORMATS):
            return str.__eq__(self, other)
        return other is not None and bool(self.numpy() == other)

    def __ne__(self, other: object) -> bool:
        """Tell whether NumPy takes both for two types."""
        return not self == other

    is_bool = property(lambda self: self.facts.kind is Kind.BOOL)
    is_handle = property(lambda self: self.facts.kind is Kind.HANDLE)

    @property
    def kind(self) -> Any:
        """NumPy's letter for what the bits mean."""
        return self.numpy().kind

    @kind.setter
    def kind(self, kind: Kind) -> None:
        """Take what is in `facts` anyway."""

    def __getattr__(self, name: str) -> Any:
        """Return what a `dtype` of NumPy has."""
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.numpy(), name)


@cache
def element_type_of(name: str) -> ElementType:
    """Return the type spelt `name`."""
    return ElementType(name)
