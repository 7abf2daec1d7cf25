"""Kernels of a function of arrays, compiled or out of a file, that run on its arguments."""

from __future__ import annotations

import linecache
import sys
import types
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tile_api.arrays.constant_arrays import ConstantArrays, a_tensor, as_given
from tile_api.arrays.edited import EditedKernels
from tile_api.arrays.equations.equations import Equations
from tile_api.arrays.equations.pieces import Piece
from tile_api.arrays.explain import Explanation
from tile_api.arrays.own_faults import blamed
from tile_api.arrays.planning.plan import Blocks
from tile_api.arrays.pricing import traced_text
from tile_api.arrays.printing.kernel_text import KernelText, distinct
from tile_api.compiling import compile as compile_kernel
from tile_api.pass_configs.keys import PassConfigKey
from tile_core.errors import ArgumentLayoutError, Note, Span, TileError


@dataclass(frozen=True)
class Derived:
    """What a function becomes for arguments of given shapes and types.

    Parameters
    ----------
    source
        A program of the developer's tier.
    kernels
        In the order in which they run.
    chosen
        Blocks that were chosen, not given.
    is_fast
        Whether functions may be approximated.
    pieces
        What kernels take that is a part of a tensor, by what they call it.
    """

    equations: Equations
    source: str
    kernels: tuple[KernelText, ...]
    explanation: Explanation
    chosen: frozenset[Blocks] = frozenset()
    is_fast: bool = False
    pieces: Mapping[str, Piece] = field(default_factory=dict)

    @property
    def configs(self) -> dict[PassConfigKey, bool] | None:
        """The pass configurations that its kernels are compiled with."""
        return {PassConfigKey.TL_ENABLE_FAST_MATH: True} if self.is_fast else None


def traced(derived: Derived) -> dict[str, tuple[Any, list[int]]]:
    """Return each kernel of the text by name: traced, and the positions of its outputs."""
    kernels = distinct(derived.kernels)
    made = traced_text(derived.equations.name, derived.source, kernels)
    return {kernel.name: each for kernel, each in zip(kernels, made, strict=True)}


class Compiled:
    """The kernels of one signature, ready to run.

    Attributes
    ----------
    function
        What users wrote, where that is known: errors of kernels name it, too.
    """

    def __init__(self, derived: Derived, target: str | None) -> None:
        self.derived = derived
        self.function: types.FunctionType | None = None
        with blamed(derived.equations.name, "compiled", lambda: derived.source):
            made = {
                name: compile_kernel(
                    kernel, out_idx=outputs, target=target, pass_configs=derived.configs
                )
                for name, (kernel, outputs) in traced(derived).items()
            }
        self.kernels = [(made[k.name], k) for k in derived.kernels]

        self._constants = ConstantArrays(derived.equations.constants)
        held = [p.tensor for p in derived.equations.parameters]
        cuts: list[list[Piece]] = []
        for _, k in self.kernels:
            new = [n for n in dict.fromkeys(k.inputs) if n in derived.pieces and n not in held]
            cuts.append([derived.pieces[n] for n in new])
            held += (*new, *k.outputs)
        outputs = derived.equations.outputs
        empty = [o for o in outputs if 0 in o.shape]
        held += [o.name for o in empty]
        parameters = enumerate(derived.equations.parameters)
        self._scalars = [number for number, p in parameters if p.shape == ()]
        self._empty = [(o.shape, o.dtype.numpy()) for o in empty]
        # Arrays by their number, the order of `held`: calls look nothing up.
        at = {name: number for number, name in enumerate(held)}
        self._steps = [
            (kernel, [(at[p.tensor], p.key) for p in cut], [at[n] for n in k.inputs],
             len(k.outputs) == 1)
            for (kernel, k), cut in zip(self.kernels, cuts, strict=True)
        ]  # fmt: skip
        self._copies_pieces = False
        self._results = [
            (at[o.name], o.shape if o.shape == () or o.dtype.packing > 1 else None) for o in outputs
        ]
        self._only = self._as_it_is()

    def _as_it_is(self) -> Callable[..., Any] | None:
        """Return the one kernel that takes what the function takes, and gives what it gives.

        A number is given as one element.
        """
        equations = self.derived.equations
        is_one = len(self._steps) == len(self._results) == 1 and equations.structure is None
        if not is_one or self._scalars or self._results[0][1]:
            return None
        ((kernel, _, inputs, _),) = self._steps
        return kernel if inputs and inputs == [*range(len(equations.parameters))] else None

    def __call__(self, arrays: Collection[Any]) -> Any:
        """Run the kernels on the arrays that the function takes, in its order.

        Views that do not lie in memory as kernels read them, such as transposes, are copied.
        """
        if self._constants:
            arrays = self._constants.behind(arrays)
        if self._only is not None:
            try:
                made = self._only(*arrays)
                return made if self._results[0][1] is None else made.squeeze()
            except TileError:  # what is wrong is told, or mended, below
                pass
        held = [*arrays]
        for number in self._scalars:  # kernels take no arrays without dimensions
            held[number] = held[number].reshape(1)
        try:
            return self._run(held[:])
        except ArgumentLayoutError:
            return self._run_copies(held)
        except TileError as error:
            if self.function is not None and error.span is not None:
                note = Note(f"in the kernels of {self.function.__name__}", _place(self.function))
                error.notes = (*error.notes, note)
            raise

    def _run_copies(self, held: Sequence[Any]) -> Any:
        """Run the kernels on copies of what does not lie in memory as they read it."""
        held = [_contiguous(x) for x in held]
        try:
            return self._run(held[:])
        except ArgumentLayoutError:  # a piece begins where vectors must not: copies do not
            if self._copies_pieces or not self.derived.pieces:
                raise
            self._copies_pieces = True
            return self._run(held)

    def _run(self, held: list[Any]) -> Any:
        copies = self._copies_pieces
        for kernel, pieces, inputs, is_single in self._steps:
            held += [_copied(held[of][key]) if copies else held[of][key] for of, key in pieces]
            made = kernel(*[held[number] for number in inputs])
            if not inputs:
                held += as_given([made] if is_single else made, held)
            elif is_single:
                held.append(made)
            else:
                held += made
        held += [_empty(shape, dtype, held) for shape, dtype in self._empty]
        results = [
            held[number] if shape is None else shaped(held[number], shape)
            for number, shape in self._results
        ]
        return together(results, self.derived.equations)


def _place(function: types.FunctionType) -> Span | None:
    """Return the line that defines a function, behind its decorators."""
    code = function.__code__
    lines = linecache.getlines(code.co_filename, function.__globals__)
    for number, line in enumerate(lines[code.co_firstlineno - 1 :], code.co_firstlineno):
        start = line.lstrip()
        if start.startswith("def "):
            return Span(code.co_filename, number, len(line) - len(start), len(line.rstrip()))
    return None


class Edited:
    """The kernels of a file in place of generated ones."""

    def __init__(self, edited: EditedKernels) -> None:
        self.edited = edited
        self._constants = ConstantArrays(edited.equations.constants)

    def __call__(self, arrays: Iterable[Any]) -> Any:
        """Run the file's `launch` on the arrays that the function takes, in its order."""
        held = self._constants.behind(arrays)
        try:
            results = self.edited.results(held)
        except ArgumentLayoutError:
            results = self.edited.results([_contiguous(x) for x in held])
        return together(results, self.edited.equations)


def _contiguous(x: Any) -> Any:
    """Return an array whose elements lie one behind the other: `x`, or a copy."""
    if getattr(x, "is_sparse", False):
        return x
    return x.contiguous() if hasattr(x, "contiguous") else np.require(x, requirements="C")


def _copied(x: Any) -> Any:
    return x.clone() if hasattr(x, "clone") else x.copy()


def shaped(x: Any, shape: tuple[int, ...]) -> Any:
    """Return a result in its shape; two integers of 4 bits in a byte become two of NumPy's."""
    if shape == ():
        return x.squeeze()
    if not isinstance(x, np.ndarray) or x.shape == shape:
        return x  # torch has no such integers: they stay two in a byte
    import ml_dtypes

    kind = ml_dtypes.int4 if x.dtype == np.int8 else ml_dtypes.uint4
    pairs = np.stack([x.view("uint8") & 15, x.view("uint8") >> 4], axis=-1)
    return pairs.reshape(*shape[:-1], -1)[..., : shape[-1]].astype("int8").astype(kind)


def _empty(shape: tuple[int, ...], dtype: np.dtype[Any], like: Sequence[Any]) -> Any:
    """Return an array without elements, a tensor of torch where the arguments are."""
    tensor = a_tensor(like)
    if tensor is None:
        return np.empty(shape, dtype)
    return tensor.new_empty(shape, dtype=getattr(sys.modules["torch"], str(dtype)))


def together(results: Sequence[Any], equations: Equations) -> Any:
    """Return results as the function returned them: one, or what holds several."""
    kind = equations.structure
    if kind is None:
        return results[0]
    return kind(*results) if hasattr(kind, "_fields") else kind(results)
