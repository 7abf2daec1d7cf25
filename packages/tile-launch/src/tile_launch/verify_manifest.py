"""Whether a manifest makes sense as a whole: what it names is there, and its numbers are bounded.

`tile_launch.manifest_json` reads records one by one. What is checked here spans them, so that
launchers, which are generated, can rely on it: texts name variables that exist, extents are
integers, and no expression computes numbers of millions of digits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod
from typing import NoReturn

from tile_launch.errors import InvalidBundle
from tile_launch.expressions import Expression, ExpressionType, kind_of, variables_of
from tile_launch.manifest import (
    Address,
    Argument,
    Check,
    Launch,
    Let,
    Manifest,
    Scalar,
    Tensor,
    TensorMap,
    Value,
)

_SYMBOL = ExpressionType("int", 64)
_MOST_THREADS = 1 << 20
"""Threads of a block; machines run fewer, and say so."""
_CONDITIONS = frozenset({"contract", "assume", "assert", "grid"})


def check(manifest: Manifest, where: str) -> None:
    """Raise `InvalidBundle` unless a manifest makes sense, naming the part that makes none."""
    _Checker(manifest, where).check()


class _Checker:
    def __init__(self, manifest: Manifest, where: str) -> None:
        self.manifest, self.where = manifest, where
        self.tensors = {p.name for p in manifest.parameters if isinstance(p, Tensor)}
        self.tensors |= {w.name for w in manifest.workspaces}
        self.known: dict[str, ExpressionType] = dict.fromkeys(self._symbols(), _SYMBOL)
        for param in manifest.parameters:
            if isinstance(param, Scalar):
                self.known[param.name] = _kind_of_scalar(param.dtype)

    def _symbols(self) -> Iterable[str]:
        """Return the variables that shapes and strides of arguments determine."""
        yield from self.manifest.symbols
        for param in self.manifest.parameters:
            if isinstance(param, Tensor):
                for size in (*param.shape, *(param.strides or ())):
                    yield from variables_of(size)

    def check(self) -> None:
        manifest = self.manifest
        if not manifest.kernel.isprintable():
            self.refuse(f"{manifest.kernel!r} is the name of no kernel")
        if not self.tensors.isdisjoint(self.known):
            self.refuse("a tensor and a number have one name")
        names = [p.name for p in manifest.parameters] + [w.name for w in manifest.workspaces]
        if len({*names}) < len(names):
            self.refuse("two parameters or workspaces have one name")
        outputs = manifest.outputs
        if len({*outputs}) < len(outputs) or not all(self._is_tensor(p) for p in outputs):
            self.refuse(f"outputs: {list(outputs)} are not the positions of tensors")
        for param in manifest.parameters:
            if isinstance(param, Tensor):
                self.integers(param.name, (*param.shape, *(param.strides or ())), self.known)
                if param.alignment.bit_count() != 1:
                    self.refuse(f"{param.name}: {param.alignment} is no power of two")
        for condition in manifest.conditions:
            named = [v for v in variables_of(condition.value) if v not in self.tensors]
            free = dict.fromkeys(named, _SYMBOL) | self.known  # unknown ones are not checked
            self.kind("conditions", condition.value, free)
            if condition.kind not in _CONDITIONS:
                self.refuse(f"conditions: {condition.kind!r} is no kind of condition")
        self._check_steps()

    def _is_tensor(self, position: int) -> bool:
        parameters = self.manifest.parameters
        return position < len(parameters) and isinstance(parameters[position], Tensor)

    def _check_steps(self) -> None:
        if not self.manifest.launches:
            self.refuse("steps: nothing is launched")
        known = dict(self.known)
        for number, step in enumerate(self.manifest.steps):
            what = f"steps[{number}]"
            if isinstance(step, Let):
                known[step.variable] = self.kind(what, step.value, known)
            elif isinstance(step, Check):
                self.kind(what, step.condition, known)
            else:
                self._check_launch(what, step, known)

    def _check_launch(self, what: str, launch: Launch, known: Mapping[str, ExpressionType]) -> None:
        self.integers(f"{what}: grid", launch.grid, known)
        if prod(launch.block) > _MOST_THREADS:
            self.refuse(f"{what}: a block of {prod(launch.block)} threads runs nowhere")
        if len(launch.cluster) > 3 or 0 in launch.cluster:
            self.refuse(f"{what}: clusters have up to three extents, none of them 0")
        if launch.shared_bytes >> 31:
            self.refuse(f"{what}: {launch.shared_bytes} bytes of shared memory are nowhere")
        if not launch.symbol.isidentifier():
            self.refuse(f"{what}: {launch.symbol!r} is the name of no function")
        for workspace in self.manifest.workspaces:
            self.integers(workspace.name, workspace.shape, known)
        for argument in launch.arguments:
            self._check_argument(what, argument, known)

    def _check_argument(
        self, what: str, argument: Argument, known: Mapping[str, ExpressionType]
    ) -> None:
        if isinstance(argument, Address | TensorMap) and argument.tensor not in self.tensors:
            self.refuse(f"{what}: there is no tensor {argument.tensor!r}")
        if isinstance(argument, Value):
            found = self.kind(what, argument.variable, known)
            if found.name == "float" and not argument.dtype.startswith("float"):
                self.refuse(f"{what}: {argument.variable!r} is no {argument.dtype}")
        if isinstance(argument, TensorMap):
            sizes = (argument.offset, *argument.extents, *argument.strides)
            self.integers(f"{what}: {argument.name}", sizes, known)

    # Expressions ---------------------------------------------------------------------------

    def integers(
        self, what: str, sizes: Iterable[Expression], known: Mapping[str, ExpressionType]
    ) -> None:
        for size in sizes:
            if self.kind(what, size, known).name != "int":
                self.refuse(f"{what}: an extent is no integer")

    def kind(
        self, what: str, expression: Expression, known: Mapping[str, ExpressionType]
    ) -> ExpressionType:
        return kind_of(expression, known, f"{self.where}: {what}")

    def refuse(self, reason: str) -> NoReturn:
        raise InvalidBundle(f"{self.where}: {reason}")


def _kind_of_scalar(dtype: str) -> ExpressionType:
    if dtype == "bool":
        return ExpressionType("bool", 1)
    return ExpressionType("float", 64) if "float" in dtype else _SYMBOL
