"""Annotations: facts and hints attached to buffers, launches and kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tile_api.frontend.builder import BlockKind, Builder, Frame, current
from tile_api.frontend.values import as_buffer, as_value
from tile_api.language.operands import choice, count, emit, here
from tile_core.errors import (
    FrontendTypeError,
    FrontendValueError,
    LayoutConflict,
    LayoutError,
    Note,
    ScopeMismatch,
)
from tile_core.ir import build_expr
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.expr import Expr
from tile_core.ir.stmt import AnnotateLayout, AnnotateSafeValue, Hint
from tile_core.ops.mbarrier import SetRegisters

__all__ = [
    "annotate_compile_flags", "annotate_consumer_reg_alloc", "annotate_l2_hit_ratio",
    "annotate_layout", "annotate_min_blocks_per_sm", "annotate_pass_configs",
    "annotate_producer_reg_dealloc", "annotate_restrict_buffers", "annotate_safe_value", "attr",
    "dec_max_nreg", "disable_warp_group_reg_alloc", "func_attr", "inc_max_nreg", "no_set_max_nreg",
    "set_max_nreg", "use_swizzle",
]  # fmt: skip


def annotate_layout(layout_map: Mapping[Any, Any]) -> None:
    """Fix the physical layout of buffers.

    Parameters
    ----------
    layout_map
        By buffer: a `T.Layout` (a `T.Fragment` for fragments), or a function from logical
        to physical coordinates.

    Raises
    ------
    FrontendTypeError
        If a value is no layout, or a fragment gets something else than a `T.Fragment`.
    FrontendValueError
        If a layout does not fit the buffer's shape, or puts two elements at one place.
    LayoutConflict
        If a buffer is given two different layouts.
    """
    builder = current()
    for buffer, spec in _items(layout_map, "T.annotate_layout"):
        layout = _layout_for(buffer, spec)
        first = builder.layouts.setdefault(buffer.storage, (layout, here()))
        if first[0] != layout:
            raise LayoutConflict(
                f"{buffer.name!r} is given two different layouts{_difference(first[0], layout)}",
                span=here(),
                notes=(Note("the first is given here", first[1]),),
                hint="keep one of them, or copy the tile to a second one with the other layout",
            )
        emit(AnnotateLayout(buffer, layout))


def _difference(first: Any, second: Any) -> str:
    from tile_core.layout import Layout

    if not isinstance(first, Layout) or not isinstance(second, Layout):
        return ""
    element = first.first_difference(second) if first.shape == second.shape else None
    return "" if element is None else f": element {element} is not at the same place in both"


def _items(mapping: Any, what: str) -> list[tuple[Buffer, Any]]:
    if not isinstance(mapping, Mapping):
        told = f"{what} takes a dictionary from buffers, got {type(mapping).__name__}"
        raise FrontendTypeError(told, hint=f"write {what}({{A_shared: ...}})")
    return [(as_buffer(b, f"a key given to {what}"), v) for b, v in mapping.items()]


def _layout_for(buffer: Buffer, spec: Any) -> object:
    from tile_core.layout import Fragment, Layout

    shape = buffer.static_shape
    if shape is None:
        raise FrontendValueError(
            f"{buffer.name!r} has extents known only at run time: its layout cannot be fixed",
            hint="leave the annotation out, or make the extents compile-time integers",
        )
    is_fragment = buffer.scope is Scope.FRAGMENT
    if is_fragment and not isinstance(spec, Fragment):
        raise FrontendTypeError(
            f"the fragment {buffer.name!r} needs a T.Fragment, got {type(spec).__name__}",
            hint="T.Fragment(shape, forward_fn=lambda i, j: (thread, index))",
        )
    if not is_fragment and isinstance(spec, Fragment):
        raise FrontendTypeError(
            f"{buffer.name!r} is in {buffer.scope.value} memory, which no thread owns a part of: "
            "it takes no T.Fragment",
            hint="give a T.Layout, or allocate the tile with T.alloc_fragment",
        )
    try:
        layout = spec
        if not isinstance(spec, (Layout, Fragment)):
            layout = Layout(shape, _forward(buffer, spec))
        if tuple(layout.shape) != tuple(shape):
            raise FrontendValueError(
                f"the layout of {buffer.name!r} has the shape {tuple(layout.shape)}, the buffer "
                f"{tuple(shape)}",
                hint=f"make the layout for {tuple(shape)}",
            )
        if not is_fragment and not layout.is_injective():
            raise FrontendValueError(
                f"the layout of {buffer.name!r} is not injective: it puts two elements at one "
                "place",
                notes=(Note(f"{buffer.name} is declared here", buffer.span),),
                hint="every element needs an address of its own; padding between rows is fine",
            )
    except LayoutError as error:
        raise FrontendValueError(
            f"the layout of {buffer.name!r}: {error.message}",
            hint=error.hint
            or "the function takes one coordinate per dimension and returns an "
            "expression, or a list of them",
        ) from error
    return layout


def _forward(buffer: Buffer, spec: Any) -> Callable[..., Any]:
    if not callable(spec):
        raise FrontendTypeError(
            f"{type(spec).__name__} {spec!r} is not a layout for {buffer.name!r}",
            hint="pass a T.Layout, or a function such as lambda i, j: [i, j ^ (i % 8)]",
        )
    return spec  # type: ignore[no-any-return]


def annotate_safe_value(safe_value_map: Mapping[Any, Any]) -> None:
    """Say what loads outside a global tensor give, instead of 0, to the end of this block.

    Parameters
    ----------
    safe_value_map
        By tensor: a number or expression, converted to its element type.

    Raises
    ------
    ScopeMismatch
        If a buffer is not global: others must not be read outside.
    """
    for buffer, value in _items(safe_value_map, "T.annotate_safe_value"):
        if not buffer.scope.is_global:
            raise ScopeMismatch(
                f"only global tensors have a safe value; {buffer.name!r} is in "
                f"{buffer.scope.value} memory",
                hint="reads outside other buffers are errors",
            )
        safe = build_expr.cast(as_value(value, buffer.dtype), buffer.dtype)
        emit(AnnotateSafeValue(buffer, safe))


def use_swizzle(panel_size: Any, order: str = "row", enable: Any = True) -> None:
    """Ask for another order of the blocks, for locality in caches. No effect on results.

    Parameters
    ----------
    panel_size
        Blocks per panel.
    order
        ``"row"``, ``"column"`` or ``"mlx"``.
    enable
        Do nothing if false.

    Raises
    ------
    FrontendValueError
        Another order, or a panel size below 1.
    """
    word = choice(order, ("row", "column", "mlx"), "order of blocks")
    size = count(panel_size, "panel_size")
    if isinstance(enable, Expr):
        raise FrontendTypeError("`enable` must be known at compile time", hint="pass True or False")
    if enable:
        emit(Hint("swizzle", (size, word)))


def annotate_restrict_buffers(*buffers: Any) -> None:
    """Say that these parameters may overlap others: nothing may be assumed about them."""
    names = tuple(as_buffer(b, "an argument of T.annotate_restrict_buffers").name for b in buffers)
    emit(Hint("may_alias", names))


def annotate_l2_hit_ratio(l2_hit_ratio_map: Mapping[Any, Any]) -> None:
    """Ask how much of each tensor shall stay in the GPU's second-level cache, from 0 to 1."""
    for buffer, ratio in _items(l2_hit_ratio_map, "T.annotate_l2_hit_ratio"):
        if not isinstance(ratio, (int, float)) or not 0 <= ratio <= 1:
            told = f"a hit ratio lies between 0 and 1, got {ratio!r} for {buffer.name!r}"
            raise FrontendValueError(told, hint="give a fraction, such as 0.5")
        emit(Hint("l2_hit_ratio", (buffer.name, str(float(ratio)))))


def annotate_min_blocks_per_sm(n: Any) -> None:
    """Ask that so many blocks share a multiprocessor, with fewer registers for each thread."""
    emit(Hint("min_blocks_per_sm", (count(n, "the number of blocks"),)))


def _registers(value: Any) -> int:
    number = count(value, "the number of registers", least=0)
    if not 24 <= number <= 240 or number % 8:
        told = f"{number} registers: the number must be a multiple of 8 between 24 and 240"
        raise FrontendValueError(told, hint="round it to a multiple of 8")
    return number


def set_max_nreg(reg_count: Any, is_inc: Any) -> None:
    """Ask for `reg_count` registers per thread of this warp group, more (`is_inc`) or fewer.

    Inside of `T.ws` the groups change them there. Elsewhere the hint is for the groups that the
    compiler makes of a block itself.
    """
    number = _registers(reg_count)
    if current().inside(BlockKind.THREADS):
        emit(SetRegisters(number, bool(is_inc)))
    else:
        emit(Hint("max_registers", (number, "inc" if is_inc else "dec")))


def inc_max_nreg(reg_count: Any) -> None:
    """Ask for more registers per thread of this warp group."""
    set_max_nreg(reg_count, True)


def dec_max_nreg(reg_count: Any) -> None:
    """Give back registers of the threads of this warp group."""
    set_max_nreg(reg_count, False)


def no_set_max_nreg() -> None:
    """Leave the registers of warp groups as they are."""
    emit(Hint("max_registers", ("fixed",)))


def disable_warp_group_reg_alloc() -> None:
    """Leave the registers of warp groups as they are."""
    no_set_max_nreg()


def annotate_producer_reg_dealloc(reg_count: Any = 24) -> None:
    """Ask for `reg_count` registers per thread of the warps that copy."""
    emit(Hint("producer_registers", (_registers(reg_count),)))


def annotate_consumer_reg_alloc(reg_count: Any = 240) -> None:
    """Ask for `reg_count` registers per thread of the warps that compute."""
    emit(Hint("consumer_registers", (_registers(reg_count),)))


def annotate_compile_flags(flags: Any) -> None:
    """Append flags for the compiler of the generated source: a string or a list of them."""
    items = [flags] if isinstance(flags, str) else flags
    if not isinstance(items, (list, tuple)) or not all(isinstance(f, str) for f in items):
        told = f"compile flags are a string or a list of strings, got {flags!r}"
        raise FrontendTypeError(told, hint='write T.annotate_compile_flags(["-O2"])')
    current().compile_flags.extend(items)


def annotate_pass_configs(configs: Mapping[Any, Any]) -> None:
    """Set pass configurations of this kernel; those given to `compile` override them."""
    if not isinstance(configs, Mapping):
        raise FrontendTypeError(
            f"pass configurations are a dictionary, got {configs!r}",
            hint="write T.annotate_pass_configs({key: value})",
        )
    for key, value in configs.items():
        current().pass_configs[str(getattr(key, "value", key))] = value


def func_attr(attrs: Mapping[str, Any]) -> None:
    """Attach attributes to the kernel function; they have no effect on results."""
    if not isinstance(attrs, Mapping):
        raise FrontendTypeError(
            f"attributes are a dictionary, got {attrs!r}", hint='write T.func_attr({"name": value})'
        )
    current().attrs.update(attrs)


class AttributeFrame(Frame):
    """What `T.attr` returns: an attribute that holds to the end of the block.

    ``reduce_scope`` says how `T.tvm_thread_allreduce` combines; others are dropped.
    """

    def __init__(self, node: Any, key: str, value: Any) -> None:
        self.node, self.key, self.value = node, key, value
        self.before: object = None

    def enter(self, builder: Builder, names: tuple[str, ...]) -> None:
        """Begin to hold."""
        self.before = builder.attrs.get(self.key)
        if self.key == "reduce_scope":
            builder.attrs[self.key] = self.node

    def exit(self, builder: Builder) -> None:
        """Stop to hold."""
        if self.key == "reduce_scope":
            builder.attrs.pop(self.key, None)
            if self.before is not None:
                builder.attrs[self.key] = self.before


def attr(node: Any, attr_key: str, value: Any) -> AttributeFrame:
    """Attach a raw attribute to the statements inside: ``with T.attr(node, attr_key, value):``."""
    if not isinstance(attr_key, str):
        raise FrontendTypeError(
            f"the key of an attribute is a string, got {attr_key!r}",
            hint="write T.attr(node, 'key', value)",
        )
    current()
    return AttributeFrame(node, attr_key, value)
