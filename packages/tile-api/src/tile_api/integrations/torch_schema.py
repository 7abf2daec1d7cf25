"""Names and schemas of torch operators: what torch must know of a kernel's parameters."""

from __future__ import annotations

from collections.abc import Sequence

from tile_api.arguments import Signature, declared
from tile_core.dtypes import Kind
from tile_core.errors import TorchOpNameError, TorchOpSignatureError
from tile_core.ir.buffer import Buffer
from tile_core.ir.expr import Var
from tile_launch.manifest import Tensor
from tile_launch.symbol_solver import spelt

_RESERVED = frozenset({"aten", "prim", "prims", "inductor", "higher_order"})
_SCALARS = {Kind.BOOL: "bool", Kind.INT: "SymInt", Kind.UINT: "SymInt", Kind.FLOAT: "float"}


def check_op_name(name: object) -> str:
    """Return the name of an operator, which has two parts."""
    if not isinstance(name, str):
        raise TorchOpNameError(
            f"the name of a torch operator is a str, got {type(name).__name__}",
            hint='write kernel.as_torch_op("mylib::add")',
        )
    parts = name.split("::")
    if len(parts) != 2 or not all(part.isidentifier() and part.isascii() for part in parts):
        raise TorchOpNameError(
            f"{name!r} is no name of a torch operator",
            hint='names have a namespace and two colons: "mylib::add"',
        )
    if parts[0] in _RESERVED:
        raise TorchOpNameError(
            f"{name!r} is in a namespace of torch itself",
            hint=f'use one of your own: "mylib::{parts[1]}"',
        )
    return name


def written_inputs(signature: Signature) -> tuple[str, ...]:
    """Return the names of the tensors that the caller passes and the kernel may change."""
    params = signature.kernel.params
    return tuple(params[p].name for p in signature.inputs if p in signature.written)


def check_mutates(signature: Signature, asked: object) -> tuple[str, ...]:
    """Return which arguments torch shall take for changed: those asked for, or that may change."""
    written = written_inputs(signature)
    if asked is None:
        return written
    names = list(asked) if isinstance(asked, (list, tuple, set, frozenset)) else None
    kernel, params = signature.kernel, signature.kernel.params
    tensors = [params[p].name for p in signature.inputs if isinstance(params[p], Buffer)]
    if names is None or any(name not in tensors for name in names):
        raise TorchOpSignatureError(
            f"mutates_args of {kernel.name} are names of tensor arguments, got {asked!r}",
            hint=f"its tensor arguments are {', '.join(tensors) or 'none'}",
        )
    missing = [name for name in written if name not in names]
    if missing:
        raise TorchOpSignatureError(
            f"{kernel.name} may change {', '.join(missing)}, which mutates_args leaves out",
            hint="leave out mutates_args: what a kernel writes is known, mutates_args="
            f"{list(written)}",
        )
    return tuple(name for name in tensors if name in names)


def schema_of(signature: Signature, mutates: Sequence[str]) -> str:
    """Return the schema of a kernel as torch reads it.

    Before   (A: T.Tensor, B: T.Tensor, n: T.int32) -> C, where B is changed
    After    (Tensor A, Tensor(a0!) B, SymInt n) -> Tensor
    """
    arguments, letters = [], 0
    for position in signature.inputs:
        param = signature.kernel.params[position]
        if isinstance(param, Buffer):
            kind = "Tensor"
            if param.name in mutates:
                kind, letters = f"Tensor(a{letters}!)", letters + 1
            elif position in signature.untouched:
                kind = "Tensor?"
        else:
            kind = _scalar(signature, param)
        arguments.append(f"{kind} {param.name}")
    count = len(signature.kernel.outputs)
    result = {0: "()", 1: "Tensor"}.get(count, f"({', '.join(['Tensor'] * count)})")
    return f"({', '.join(arguments)}) -> {result}"


def tensors_of(signature: Signature) -> tuple[str, ...]:
    """Return the tensors of a kernel in words, those that it returns marked.

    Kernels for several kinds of devices that are one operator have the same.
    """
    manifest = signature.host.manifest
    found = []
    for position, param in enumerate(manifest.parameters):
        if isinstance(param, Tensor):
            returned = "returned " if position in manifest.outputs else ""
            strides = f" with strides {spelt(param.strides)}" if param.strides else ""
            found.append(f"{returned}{param.name}: {param.dtype}{spelt(param.shape)}{strides}")
    return tuple(found)


def _scalar(signature: Signature, param: Var) -> str:
    kind = _SCALARS.get(param.dtype.kind)
    if kind is None:
        raise TorchOpSignatureError(
            f"{signature.name(param)} is an address ({param.dtype}), of which torch knows neither "
            "size nor device",
            notes=declared(param),
            hint='declare it as a tensor: A: T.Tensor((n,), "float32") with n = T.dynamic("n")',
        )
    return kind
