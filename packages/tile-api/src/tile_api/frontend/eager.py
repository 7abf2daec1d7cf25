"""The eager style of `@tile.jit`: the decorated function's own body holds the kernel.

Phase 1 traces the statements before the first ``with T.Kernel`` with `T.const` names as
symbols, to learn which dimension of which tensor fixes each. Phase 2 traces everything with
the constants as Python ints.
"""

from __future__ import annotations

import ast
import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from typing import Any

from tile_api.frontend.builder import Builder, tracing
from tile_api.frontend.function import check_parameter, finish, run_traced, user_errors
from tile_api.frontend.rewrite import Rewritten, rewrite_function
from tile_api.frontend.source import (
    FunctionSource,
    current_lines,
    evaluate_annotations,
    read_source,
    require_bare,
)
from tile_api.frontend.types import PointerSpec, TensorSpec
from tile_core.dtypes import DType, dtype_of
from tile_core.errors import ConstBindingError, FrontendError, Note, SignatureError
from tile_core.ir.buffer import Buffer
from tile_core.ir.expr import Extent, Var
from tile_core.ir.stmt import Kernel
from tile_core.records import dataclass
from tile_launch.contract import Contract, require_kept


@dataclass(frozen=True, slots=True)
class ConstBinding:
    """The place that fixes a constant: a dimension or a stride of a tensor argument."""

    tensor: str
    dim: int
    is_stride: bool = False


@dataclass(frozen=True, slots=True)
class EagerSignature:
    """What phase 1 learns of the function `name`."""

    tensors: Mapping[str, Buffer]  # by parameter, in signature order; constants are symbols
    constants: Mapping[str, ConstBinding]  # where the value of each `T.const` name comes from
    name: str

    def require_kept(self, values: Mapping[str, int], passed: Mapping[str, Any]) -> None:
        """Refuse values that contracts of constants exclude; tensors left out are None."""
        for name, value in values.items():
            place = self.constants[name]
            buffer = self.tensors[place.tensor]
            sizes: Sequence[Extent] = (buffer.strides or ()) if place.is_stride else buffer.shape
            axes = "strides" if place.is_stride else "shape"
            symbol = sizes[place.dim]
            if isinstance(symbol, Var) and symbol.contract is not None:
                origin = f"{place.tensor}.{axes}[{place.dim}]"
                given = passed.get(place.tensor) is not None
                because = origin if given else None
                require_kept(self.name, name, symbol.contract, value, because, span=symbol.span)


class _PrologueDone(BaseException):
    """Phase 1 has reached the kernel. Not an error: passes through the user's code."""


@dataclass(slots=True)
class EagerState:
    """What the trace of an eager function knows besides its statements."""

    values: Mapping[str, int] | None  # of constants in phase 2; None in phase 1
    symbols: dict[str, Var] = field(default_factory=dict)
    tensors: dict[str, Buffer] = field(default_factory=dict)
    pointers: dict[str, Var] = field(default_factory=dict)

    def constant(
        self, builder: Builder, name: str, dtype: DType, contract: Contract | None = None
    ) -> Any:
        """Return the constant called `name`: a symbol in phase 1, an int in phase 2."""
        if self.values is None:
            if name not in self.symbols:
                self.symbols[name] = Var(name, dtype, contract, span=builder.span)
            return self.symbols[name]
        if name not in self.values:
            raise ConstBindingError(
                f"the value of the constant {name!r} is not known",
                span=builder.span,
                hint=f"pass a tensor that has {name} as a dimension, or {name}=... to .compile()",
            )
        value = int(self.values[name])
        if contract is not None:
            require_kept(builder.name, name, contract, value, span=builder.span)
        return value

    def declare(self, builder: Builder, name: str, old: Any, spec: Any) -> Buffer | None:
        """Return the buffer of a tensor parameter declared in the body."""
        if not isinstance(spec, TensorSpec):
            return None
        buffer = spec.buffer(name, builder.span)
        self.tensors[name] = buffer
        return buffer

    def reached_kernel(self) -> None:
        """Stop phase 1: the launch begins here."""
        if self.values is None:
            raise _PrologueDone


@dataclass(frozen=True, slots=True)
class EagerFunction:
    """An eager function, parsed once."""

    source: FunctionSource
    rewritten: Rewritten
    annotated: Mapping[str, TensorSpec | PointerSpec]
    tensor_names: tuple[str, ...]  # or of pointers, in signature order; all others are compile-time

    def signature(self, compile_time: Mapping[str, Any]) -> EagerSignature:
        """Run phase 1."""
        state = EagerState(None)
        builder = self._run(state, compile_time)
        tensors = {name: state.tensors[name] for name in self.tensor_names if name in state.tensors}
        self._require_declared(state)
        return EagerSignature(tensors, _bindings(state, tensors), builder.name)

    def trace(self, compile_time: Mapping[str, Any], constants: Mapping[str, int]) -> Kernel:
        """Run phase 2 and return the kernel; `T.empty` tensors are its last parameters."""
        state = EagerState(dict(constants))
        builder = self._run(state, compile_time)
        self._require_declared(state)
        declared: dict[str, Buffer | Var] = {**state.tensors, **state.pointers}
        params = tuple(declared[name] for name in self.tensor_names)
        return finish(builder, params, self.source.span)

    def _run(self, state: EagerState, compile_time: Mapping[str, Any]) -> Builder:
        builder = Builder(self.source.function.__name__, eager=state)
        values: dict[str, Any] = dict(compile_time)
        with tracing(builder), user_errors(builder, self.source.file):
            for name in self.tensor_names:
                values[name] = self._initial(state, builder, name)
        with suppress(_PrologueDone):
            run_traced(builder, self.source, self.rewritten, values)
        return builder

    def _initial(self, state: EagerState, builder: Builder, name: str) -> Any:
        """Return what a parameter of a launch holds before any declaration in the body."""
        from tile_api.frontend.vector_buffers import buffer_value

        spec, span = self.annotated.get(name), self.source.parameter_span(name)
        if spec is None:
            return None
        if isinstance(spec, PointerSpec):
            state.pointers[name] = Var(name, dtype_of("handle"), span=span)
            return state.pointers[name]
        buffer = spec.buffer(name, span)
        state.tensors[name] = buffer
        return buffer_value(buffer, spec.lanes)

    def _require_declared(self, state: EagerState) -> None:
        for name in self.tensor_names:
            if name not in state.tensors and name not in state.pointers:
                raise SignatureError(
                    f"the tensor parameter {name!r} is not declared before the kernel",
                    span=self.source.parameter_span(name),
                    hint=f'write {name}: T.Tensor((M, N), "float32") at the top of the body',
                )


def _bindings(state: EagerState, tensors: Mapping[str, Buffer]) -> dict[str, ConstBinding]:
    """Find for each constant the first dimension, else the first stride, that it is."""
    result: dict[str, ConstBinding] = {}
    for is_stride in (False, True):
        for name, buffer in tensors.items():
            sizes: Sequence[Extent] = (buffer.strides or ()) if is_stride else buffer.shape
            for dim, size in enumerate(sizes):
                if isinstance(size, Var) and size is state.symbols.get(size.name):
                    result.setdefault(size.name, ConstBinding(name, dim, is_stride))
    for name, symbol in state.symbols.items():
        if name not in result:
            raise ConstBindingError(
                f"no dimension or stride of a tensor is the constant {name!r} itself",
                span=symbol.span,
                notes=tuple(Note(f"{n} is declared here", b.span) for n, b in tensors.items()),
                hint=f"use {name} directly as a dimension of an argument, or make it a parameter",
            )
    return result


def eager_function(function: Callable[..., Any]) -> EagerFunction:
    """Parse an eager function."""
    source = read_source(function)
    rewritten = rewrite_function(source, kind="eager", references={})
    annotations = evaluate_annotations(source.function)
    specs = _declarations(annotations)
    names = []
    for name, parameter in inspect.signature(source.function).parameters.items():
        check_parameter(parameter, source.function, source.parameter_span(name))
        if name in specs or name in rewritten.declared:
            names.append(name)
    return EagerFunction(source, rewritten, specs, tuple(names))


def _declarations(annotations: Mapping[str, Any]) -> dict[str, TensorSpec | PointerSpec]:
    """Return what annotations declare that a launch takes: tensors, and pointers."""
    found: dict[str, TensorSpec | PointerSpec] = {}
    for name, annotation in annotations.items():
        if name == "return":
            continue
        if isinstance(annotation, (TensorSpec, PointerSpec)):
            found[name] = annotation
        elif isinstance(annotation, DType) and annotation.is_handle:
            found[name] = PointerSpec()
    return found


def is_eager(function: Callable[..., Any]) -> bool:
    """Whether the function's own body is a kernel, rather than returning one.

    Decided by its text: it declares a parameter as a tensor, or it uses `T.const`, `T.empty`
    or ``with T.Kernel`` outside nested functions. Where a decorator wrapped the function, it is
    the text of the inner one; a wrapper is called, and cannot be a kernel itself.
    """
    inner = inspect.unwrap(function)
    if not isinstance(inner, types.FunctionType):
        return False
    current_lines(inner)
    try:
        source = read_source(inner)
    except FrontendError:  # of a lambda, or there is no text
        return False
    found = _is_eager(source)
    if found and isinstance(function, types.FunctionType):
        require_bare(function)
    return found


def _is_eager(source: FunctionSource) -> bool:
    args = source.tree.args
    names = {a.arg for a in (*args.posonlyargs, *args.args, *args.kwonlyargs)}
    nested = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
    stack: list[ast.AST] = list(source.tree.body)
    while stack:
        node = stack.pop()
        if isinstance(node, nested):
            continue
        if isinstance(node, ast.AnnAssign) and node.value is None:
            if isinstance(node.target, ast.Name) and node.target.id in names:
                return True
        elif isinstance(node, ast.Call) and _last_name(node.func) in _EAGER_CALLS:
            return True
        stack.extend(ast.iter_child_nodes(node))
    return any(isinstance(a, TensorSpec) for a in evaluate_annotations(source.function).values())


_EAGER_CALLS = frozenset({"Kernel", "ClusterKernel", "const", "empty"})


def _last_name(function: ast.expr) -> str | None:
    """Return the name that is called, if the language could be meant by what is before it."""
    if isinstance(function, ast.Name):
        return function.id
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
        library = function.value.id in ("torch", "np", "numpy", "jnp")
        return None if library else function.attr
    return None
