"""A stage of torch's graph as a function of tensors that runs kernels."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch.fx import Node

from tile_api.arrays.annotations import ArrayType
from tile_api.arrays.capturing import views
from tile_api.arrays.capturing.torch_names import call_row, require_results
from tile_api.arrays.explain import KernelFacts
from tile_api.arrays.function import Function
from tile_api.torch_compile.layouts import layout_of, memory_order
from tile_api.torch_compile.nodes import Kind, kind_of, name_of, tensors_of
from tile_api.torch_compile.stages import Stage, rows_of
from tile_api.torch_compile.symbolic_shapes import Sizes, Traced, array_types, size_of, sizes_in
from tile_api.torch_compile.view_bases import base_of, reader_through

_LONGEST_NAME = 40


class Functions:
    """Functions of a graph's stages: stages that are alike, as in repeated layers, have one.

    Parameters
    ----------
    target
        What kernels run on.
    """

    def __init__(self, target: str | None) -> None:
        self.target = target
        self.known: dict[str, Function] = {}

    def keep(self, captured: Captured) -> None:
        """Let stages like one whose function could be captured have that function, too."""
        if not captured.is_symbolic:
            self.known.setdefault(captured.described, captured.function)


def _described(stage: Stage) -> str:
    """Return a text that stages have in common whose functions are the same."""
    numbers = {node: f"%{k}" for k, node in enumerate((*stage.inputs, *stage.nodes))}

    def argument(node: Node) -> Any:
        return _Text(numbers[node] if node in numbers else repr(node.meta.get("val")))

    lines = [f"{numbers[n]} = {_tensor(n.meta['val'])}" for n in stage.inputs]
    for node in stage.nodes:
        arguments = torch.fx.map_arg((node.args, node.kwargs), argument)
        made = [*map(_tensor, tensors_of(node.meta["val"]))]
        lines.append(f"{numbers[node]} = {node.op} {node.target}{arguments}: {made}")
    return "\n".join([*lines, " ".join(numbers[n] for n in stage.outputs)])


class _Text(str):
    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _tensor(x: Any) -> str:
    if not isinstance(x, torch.Tensor):
        return repr(x)
    return f"{x.dtype} {x.device} {tuple(x.shape)} {x.stride()} {layout_of(x)}"


class Captured:
    """A stage ready to run.

    Attributes
    ----------
    function
        The stage as a function of arrays.
    like
        Tensors without elements, as the function takes them.
    failed_at
        The node that could not be captured, where the function could not.
    is_symbolic
        Whether the function is for other sizes, too.
    described
        What stages with the same function have in common, unless that is for other sizes, too.
    """

    def __init__(self, stage: Stage, functions: Functions, traced: Traced | None = None) -> None:
        self.stage = stage
        self.failed_at: Node | None = None
        inputs = [n.meta["val"] for n in stage.inputs]
        self.bases = [*map(base_of, stage.inputs)]
        self._layouts = [*map(layout_of, inputs)]
        symbolic = None if traced is None else traced.stage(stage)
        types = None if symbolic is None else array_types(symbolic, self._layouts)
        self.is_symbolic = types is not None
        self._captured_from = symbolic if symbolic is not None and types is not None else stage
        names = dict(zip(stage.nodes, self._captured_from.nodes, strict=True))
        self._forms = [_form_of(node, stage, names) for node in stage.outputs]
        self._turned = [(k, form) for k, form in enumerate(self._forms) if form is not None]
        readers = [
            torch.Tensor.contiguous if x is None or x.is_plain else x.reader()
            for x in self._layouts
        ]
        self.like = tuple(read(x) for read, x in zip(readers, inputs, strict=True))
        self._readers = [
            reader_through(node, base, layout, read)
            for node, base, layout, read in zip(
                stage.inputs, self.bases, self._layouts, readers, strict=True
            )
        ]

        def made() -> Function:
            return Function(self._as_function(types or {}), target=functions.target)

        if traced is not None and types is not None:
            orders = tuple(memory_order(n.meta["val"]) for n in stage.outputs)
            lying = tuple((x.order, x.live) if x else None for x in self._layouts)
            key = self._captured_from, orders, lying
            self.function = traced.of.functions.get(key) or made()
            traced.of.functions[key] = self.function
        else:
            self.described = _described(stage)
            self.function = functions.known.get(self.described) or made()
        self.__name__ = self.function.func.__name__

    @cached_property
    def _kernels(self) -> Callable[[list[torch.Tensor]], Any]:
        return self.function.compiled(*self.like)

    def __call__(self, *bases: torch.Tensor) -> Any:
        """Run the kernels on what inputs are views of; return a tensor for each output."""
        made = self._kernels([read(x) for read, x in zip(self._readers, bases, strict=True)])
        if not self._turned:
            return made
        found = [*made]
        for k, form in self._turned:
            found[k] = form.back(made[k])
        return found

    def _as_function(self, types: Mapping[str, ArrayType]) -> Any:
        def run(**arrays: Any) -> tuple[Any, ...]:
            return self._captured(arrays)

        names = dict.fromkeys(name_of(n) or "" for n in self.stage.nodes)
        name = "_".join(n.strip("_") for n in names if n != "getitem")
        run.__name__ = run.__qualname__ = name[:_LONGEST_NAME].strip("_")
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [inspect.Parameter(n.name, kind) for n in self._captured_from.inputs]
        )
        run.__annotations__ = {**types}
        return run

    def _captured(self, arrays: dict[str, Any]) -> tuple[Any, ...]:
        known: dict[Node, Any] = {}
        stage = self._captured_from
        sizes = sizes_in(stage, self._layouts, arrays) if self.is_symbolic else {}
        for node, layout in zip(stage.inputs, self._layouts, strict=True):
            x = arrays[node.name]
            shape = [size_of(n, sizes) for n in node.meta["val"].shape]
            known[node] = x if layout is None else layout.array(x, node.name, shape)

        def given(node: Node) -> Any:
            return known[node] if node in known else size_of(node.meta["val"], sizes)

        for own, node in zip(self.stage.nodes, stage.nodes, strict=True):
            self.failed_at = own
            args, kwargs = torch.fx.map_arg((node.args, node.kwargs), given)
            known[node] = call_row(name_of(node) or "", args, kwargs)
            require_results(known[node], _results(node, sizes))
        self.failed_at = None
        return tuple(
            known[node] if form is None else form.of(known[node], known)
            for node, form in zip(stage.outputs, self._forms, strict=True)
        )


@dataclass(frozen=True)
class _Form:
    """How kernels write a result: with other dimensions than torch's.

    Parameters
    ----------
    of
        Gives what is written, of the result as it is captured and of all that are.
    back
        Gives torch's result of what was written.
    """

    of: Callable[[Any, Mapping[Node, Any]], Any]
    back: Callable[[torch.Tensor], torch.Tensor]


def _form_of(node: Node, stage: Stage, names: Mapping[Node, Node]) -> _Form | None:
    """Return the form of a result that lies in memory in another order, or has a product's rows.

    Parameters
    ----------
    names
        The nodes that are captured for those of the stage.
    """
    value = node.meta["val"]
    order = memory_order(value)
    if order is not None and order != tuple(sorted(order)):
        back = tuple(sorted(range(len(order)), key=order.__getitem__))
        return _Form(lambda x, _: views.transpose(x, order), lambda x: x.permute(back))
    shape = tuple(value.shape)
    products = [n for n in stage.nodes if kind_of(n) is Kind.PRODUCT]
    if len(products) == 1 and tuple(products[0].meta["val"].shape) == rows_of(shape) != shape:
        return _Form(
            lambda x, known: views.reshape(x, known[names[products[0]]].shape),
            lambda x: x.view(shape),
        )
    return None


_MOST_OUTPUTS = 8
_MOST_SLOWER = 2.0
"""Times as slow as its parts by the model, which knows little of what a tensor between costs."""


def kernels_of(stage: Stage, functions: Functions) -> tuple[KernelFacts, ...]:
    """Return what is known of a stage's kernels."""
    captured = Captured(stage, functions)
    found = captured.function.explain(*captured.like).kernels
    functions.keep(captured)
    return found


def is_one_kernel(stage: Stage, parts: Sequence[Stage], functions: Functions) -> bool:
    """Tell whether a stage is one kernel, not much slower by the model than parts of it.

    What cannot be captured is told elsewhere.
    """
    try:
        made = kernels_of(stage, functions)
        known = [k.milliseconds for part in parts for k in kernels_of(part, functions)]
    except Exception:
        return False
    return len(made) == 1 and made[0].milliseconds <= _MOST_SLOWER * sum(known)


def apart(stage: Stage, functions: Functions) -> list[Stage]:
    """Return a stage in as many parts as give the fewest kernels.

    Results of which none is cheaper beside another one are apart: gradients of queries go through
    keys, those of keys and values through queries.
    """
    if not 1 < len(stage.outputs) <= _MOST_OUTPUTS:
        return [stage]

    def count(outputs: Collection[Node]) -> int:
        return len(kernels_of(stage.part(outputs), functions))

    try:
        together = count(stage.outputs)
        if together == 1:
            return [stage]
        parts = [([output], count([output])) for output in stage.outputs]
        for part in parts[1:]:
            for k, (others, known) in enumerate(parts[: parts.index(part)]):
                joint = count([*others, *part[0]])
                if joint < known + part[1]:
                    parts[k] = ([*others, *part[0]], joint)
                    parts.remove(part)
                    break
    except Exception:  # what cannot be captured is told where it is compiled
        return [stage]
    if sum(n for _, n in parts) >= together:
        return [stage]
    return [stage.part(outputs) for outputs, _ in parts]


def _results(node: Node, sizes: Sizes) -> list[tuple[tuple[int, ...], str]]:
    """Return shapes and types of what torch says that a node gives."""
    return [
        (tuple(size_of(n, sizes) for n in x.shape), str(x.dtype).removeprefix("torch."))
        for x in tensors_of(node.meta["val"])
    ]
