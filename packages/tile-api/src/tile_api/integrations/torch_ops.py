"""Kernels as operators of torch: known to autograd, torch.compile and torch.export."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import torch

from tile_api.integrations.torch_batches import batched
from tile_api.integrations.torch_fakes import fake_of
from tile_api.integrations.torch_gradients import Gradient, gradient_of
from tile_api.integrations.torch_schema import check_mutates, check_op_name, schema_of
from tile_api.launching import Launcher
from tile_api.tensors import torch_device
from tile_core.errors import TileError, TorchOpNameError

if TYPE_CHECKING:
    from tile_api.kernel import CompiledKernel


@dataclass(slots=True)
class Registered:
    """An operator, and what it was made of.

    Parameters
    ----------
    op
        What torch made: a ``torch.library.CustomOpDef``.
    schema
        As `tile_api.integrations.torch_schema` wrote it.
    sources
        What runs it, by torch's name of a kind of device.
    gradient
        What the caller asked for: ``(backward, setup_context)``.
    """

    op: Any
    schema: str
    sources: dict[str, object]
    gradient: tuple[object, object]


@dataclass(slots=True)
class Registry:
    """The operators of this process by name; torch forgets those that nobody holds."""

    ops: dict[str, Registered]
    lock: threading.RLock


@lru_cache(maxsize=1)
def registry() -> Registry:
    """Return the process's operators, which torch keeps as long as the process runs."""
    return Registry({}, threading.RLock())


@dataclass(frozen=True, slots=True)
class Source:
    """What an operator is made of.

    Parameters
    ----------
    schema, mutates
        Its arguments and results, and which arguments it changes.
    run, fake
        Takes tensors and returns outputs; the same for tensors without memory.
    device
        Torch's name of the kind of device it runs on.
    origin
        The kernel or function that the user has, which tells whether two are the same.
    gradient
        None without one.
    """

    schema: str
    mutates: tuple[str, ...]
    run: Callable[..., Any]
    fake: Callable[..., Any]
    device: str
    origin: object
    gradient: Gradient | None = None


def kernel_op(
    launcher: Launcher,
    kernel: CompiledKernel,
    name: str,
    mutates_args: object,
    backward: object,
    setup_context: object,
) -> Any:
    """Return a kernel as an operator of torch; see `CompiledKernel.as_torch_op`.

    Parameters
    ----------
    launcher
        Calls the kernel.
    """
    check_op_name(name)
    signature = launcher.signature
    mutates = check_mutates(signature, mutates_args)
    schema = schema_of(signature, mutates)

    def as_op(gradient: CompiledKernel) -> Any:
        return gradient.as_torch_op(f"{name}_backward")

    gradient = gradient_of(signature, mutates, backward, setup_context, as_op)
    source = Source(
        schema,
        mutates,
        returned(launcher),
        fake_of(launcher),
        torch_device(launcher.device),
        kernel,
        gradient,
    )
    return register(name, source, (backward, setup_context))


def returned(launcher: Callable[..., Any]) -> Callable[..., Any]:
    """Return what calls a kernel and gives outputs as torch wants them: tensors, in a tuple."""

    def run(*args: Any) -> Any:
        made = launcher(*args)
        if isinstance(made, list):
            return tuple([_tensor(m) for m in made])
        return made if made is None else _tensor(made)

    return run


def _tensor(made: Any) -> Any:
    """Return an output as a torch tensor; NumPy's come from kernels that take no tensor."""
    if isinstance(made, torch.Tensor):
        return made
    from tile_api.integrations.torch_dtypes import tensor_of_array

    return tensor_of_array(made)


def register(name: str, source: Source, gradient: tuple[object, object]) -> Any:
    """Return the operator called `name`, made of `source`.

    Made of the same before, it is that operator. Made for another kind of device before, with
    the same schema, that operator learns to run on this one, too.

    Raises
    ------
    TorchOpNameError
        If the name is taken by something else.
    """
    known = registry()
    with known.lock:
        before = known.ops.get(name)
        if before is None:
            known.ops[name] = made = Registered(
                _new(name, source), source.schema, {source.device: source.origin}, gradient
            )
            return made.op
        there = before.sources.get(source.device)
        agrees = before.schema == source.schema and before.gradient == gradient
        if agrees and there is not None and _is_same(there, source.origin):
            return before.op
        if agrees and there is None:
            before.op.register_kernel(source.device)(source.run)
            before.sources[source.device] = source.origin
            return before.op
    raise TorchOpNameError(
        f"the torch operator {name!r} was made of another kernel, with the schema {before.schema}",
        hint="give each kernel a name of its own, and call as_torch_op once",
    )


def _new(name: str, source: Source) -> Any:
    space, _, short = name.partition("::")
    if hasattr(getattr(torch.ops, space), short):
        raise TorchOpNameError(
            f"the torch operator {name!r} exists already, and is no tile kernel",
            hint="choose another name",
        )
    op = torch.library.custom_op(
        name, source.run, mutates_args=source.mutates, schema=source.schema
    )
    op.register_fake(source.fake)
    op.register_vmap(batched(name, op, is_functional=not source.mutates))
    if source.gradient is not None:
        op.register_autograd(source.gradient.backward, setup_context=source.gradient.setup_context)
    return op


def _is_same(one: object, other: object) -> bool:
    """Whether two kernels may stand in for each other."""
    if one is other:
        return True
    try:
        return bool(one.compile_key() == other.compile_key())  # type: ignore[attr-defined]
    except (AttributeError, TypeError, TileError):
        return False
