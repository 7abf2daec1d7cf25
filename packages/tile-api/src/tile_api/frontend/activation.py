"""One call of a traced function: its names, and the scopes that bound them."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from typing_extensions import Never

from tile_api.frontend.builder import Builder, active
from tile_api.frontend.source import SpanTable
from tile_api.frontend.values import BufferValue
from tile_core.errors import Note, ScopeError, Span
from tile_core.records import dataclass


class Unbound:
    """The value of a local name before its first binding."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<unbound>"


UNBOUND = Unbound()


class OutOfScopeName:
    """What a name holds after the end of the block that bound it: any use is an error."""

    __slots__ = ("_block", "_bound_at", "_is_buffer", "_name")

    def __init__(
        self, name: str, block: str, bound_at: Span | None, *, is_buffer: bool = False
    ) -> None:
        self._name, self._block, self._bound_at = name, block, bound_at
        self._is_buffer = is_buffer

    def refuse(self) -> Never:
        """Raise the error that explains where the name is visible."""
        builder = active()
        hint = (
            f"declare `{self._name} = T.alloc_var(dtype)` before the block; assigning to it "
            "inside then stores, and the value can be read afterwards"
        )
        if self._is_buffer:
            hint = "allocate the tile in the block that uses it; T.alloc_global outlives a launch"
        raise ScopeError(
            f"{self._name!r} is used outside the {self._block} block that bound it",
            span=None if builder is None else builder.span,
            notes=(Note(f"{self._name} is bound here", self._bound_at),),
            hint=hint,
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__tile_expr__":
            raise AttributeError(name)
        self.refuse()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Refuse."""
        self.refuse()

    def __getitem__(self, index: Any) -> Any:
        self.refuse()

    def __bool__(self) -> bool:
        self.refuse()

    def __iter__(self) -> Any:
        self.refuse()

    def _refuse_operand(self, other: Any) -> Any:
        self.refuse()

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _refuse_operand
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _refuse_operand
    __lt__ = __le__ = __gt__ = __ge__ = _refuse_operand


@dataclass(slots=True)
class NameScope:
    """The names bound so far in one block of one function, and where."""

    label: str
    bound: dict[str, Span | None] = field(default_factory=dict)


class ActivationBase:
    """State of one call of a traced function.

    The `kind`, "prim_func", "macro" or "inline", says what `return` and attribute targets mean.
    """

    unbound = UNBOUND

    def __init__(self, builder: Builder, table: SpanTable, kind: str) -> None:
        self.builder = builder
        self.table = table
        self.kind = kind
        self.scopes: list[NameScope] = [NameScope("function")]
        self.base_depth = len(builder.blocks)
        self.left_names: dict[str, Span | None] = {}
        self.left_label = ""

    def at(self, number: int) -> None:
        """Begin the statement marked as `number`."""
        self.builder.place = (self.table, number)
        self.builder.hint = self.table.hints[number]

    def want(self, name: str | None) -> None:
        """Name the value that is evaluated next."""
        self.builder.hint = name

    def rd(self, name: str, value: Any) -> Any:
        """Return what the local `name` holds, or say why it holds nothing."""
        kind = value.__class__
        if kind is OutOfScopeName:
            value.refuse()
        if kind is Unbound:
            raise ScopeError(
                f"{name!r} is used before anything is bound to it",
                hint=f"assign to {name} first, on every path that leads here",
            )
        return value

    def note_binding(self, name: str) -> None:
        """Remember that the innermost block bound `name`."""
        self.scopes[-1].bound[name] = self.builder.span

    def named(self, *names: str) -> None:
        """Remember names that Python itself bound: loop targets, nested functions."""
        for name in names:
            self.note_binding(name)

    def push_scope(self, label: str) -> None:
        """Begin a block whose names end with it."""
        self.scopes.append(NameScope(label))

    def pop_scope(self) -> None:
        """End a block; `left` then retires the names that it bound."""
        scope = self.scopes.pop()
        self.left_names, self.left_label = scope.bound, scope.label

    def left(self, names: tuple[str, ...], values: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return what `names` hold after the block just ended."""
        bound, label = self.left_names, self.left_label
        self.left_names = {}
        return tuple(
            OutOfScopeName(name, label, bound[name], is_buffer=isinstance(value, BufferValue))
            if name in bound
            else value
            for name, value in zip(names, values, strict=True)
        )
