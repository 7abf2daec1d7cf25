"""Kernels as operators of torch: known to autograd, torch.compile and torch.export."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import torch

from tile_api.integrations.torch_fakes import fake_of
from tile_api.integrations.torch_gradients import Gradient, gradient_of
from tile_api.integrations.torch_schema import check_mutates, check_op_name, schema_of, tensors_of
from tile_api.integrations.torch_sharding import Rules, with_rules
from tile_api.launching import Launcher
from tile_api.tensors import torch_device
from tile_core.errors import TileError, TorchOpNameError, TorchOpSignatureError

if TYPE_CHECKING:
    from tile_api.callable_kernel import CallableKernel


@dataclass(slots=True)
class Registered:
    """An operator, and what it was made of."""

    op: Any  # a ``torch.library.CustomOpDef``
    first: Source
    sources: dict[str, Source]  # what runs it, by torch's name of a kind of device


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
    """What an operator is made of."""

    schema: str
    mutates: tuple[str, ...]  # which arguments it changes
    run: Callable[..., Any]
    fake: Callable[..., Any]  # the same for tensors without memory
    device: str  # torch's name of the kind
    origin: object  # the kernel or function that the user has
    tensors: tuple[str, ...] | None = None  # in words; None where each call has its own
    gradient: Gradient | None = None
    rules: Rules | None = None  # how arguments may be split; None: they are whole


def kernel_op(
    launcher: Launcher,
    kernel: CallableKernel,
    name: str,
    mutates_args: object,
    backward: object,
    setup_context: object,
) -> Any:
    """Return a kernel as an operator of torch; see `CompiledKernel.as_torch_op`."""
    check_op_name(name)
    signature = launcher.signature
    mutates = check_mutates(signature, mutates_args)
    schema = schema_of(signature, mutates)

    def as_op(gradient: CallableKernel) -> Any:
        return kernel_op(gradient.launcher, gradient, f"{name}_backward", None, None, None)

    gradient = gradient_of(signature, mutates, backward, setup_context, as_op)
    source = Source(
        schema,
        mutates,
        returned(launcher),
        fake_of(launcher),
        torch_device(launcher.device),
        kernel,
        tensors_of(signature),
        gradient,
    )
    return register(name, source)


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
    from tile_api.tensors import tensor_of

    return tensor_of(made)


def register(name: str, source: Source) -> Any:
    """Return the operator called `name`, made of `source`.

    Made of the same before, it is that operator. Made for another kind of device before, with
    the same parameters and the same gradient, that operator learns to run on this one, too: calls
    and traces go to the kernel of the device that the first tensor is on.
    """
    known = registry()
    with known.lock:
        before = known.ops.get(name)
        if before is None:
            known.ops[name] = made = _new(name, source)
            return made.op
        difference = _difference(before, source)
        if difference is None:
            if source.device not in before.sources:
                before.op.register_kernel(source.device)(source.run)
                before.sources[source.device] = source
            return before.op
    raise TorchOpNameError(
        f"the torch operator {name!r} was made of another kernel: {difference}",
        hint="give each kernel a name of its own, and call as_torch_op once",
    )


def _difference(before: Registered, source: Source) -> str | None:
    """Return why an operator is not made of `source`, and cannot be; None if it is or can."""
    first, there = before.first, before.sources.get(source.device)
    if first.schema != source.schema:
        return f"its schema is {first.schema}, this one's {source.schema}"
    if None not in (first.tensors, source.tensors) and first.tensors != source.tensors:
        pairs = zip(first.tensors or (), source.tensors or (), strict=False)
        one, other = next((pair for pair in pairs if pair[0] != pair[1]), ("", ""))
        return f"it has {one}, this one {other}"
    origins = [None if s.gradient is None else s.gradient.origin for s in (first, source)]
    if origins[0] != origins[1]:
        return "its gradient is another one"
    if there is None or _is_same(there.origin, source.origin):
        return None
    return f"it runs another one on {source.device} already"


def _new(name: str, source: Source) -> Registered:
    space, _, short = name.partition("::")
    if hasattr(getattr(torch.ops, space), short):
        raise TorchOpNameError(
            f"the torch operator {name!r} exists already, and is no tile kernel",
            hint="choose another name",
        )
    op = torch.library.custom_op(
        name, source.run, mutates_args=source.mutates, schema=source.schema
    )
    made = Registered(op, source, {source.device: source})
    op.register_fake(partial(_fake, made))
    op.register_vmap(batched(name, op, is_functional=not source.mutates))
    if source.gradient is not None:
        op.register_autograd(source.gradient.backward, setup_context=source.gradient.setup_context)
    if not source.mutates:
        with_rules(op, source.rules or (lambda *_: ()))
    return made


def _fake(operator: Registered, *args: Any) -> Any:
    """Return what a call gives, from the kernel of the device that the first tensor is on."""
    kinds = (a.device.type for a in args if isinstance(a, torch.Tensor))
    return operator.sources.get(next(kinds, ""), operator.first).fake(*args)


def _is_same(one: object, other: object) -> bool:
    """Whether two kernels may stand in for each other."""
    if one is other:
        return True
    try:
        return bool(one.compile_key() == other.compile_key())  # type: ignore[attr-defined]
    except (AttributeError, TypeError, TileError):
        return False


def batched(name: str, op: Callable[..., Any], *, is_functional: bool) -> Callable[..., Any]:
    """Return what torch.vmap calls for an operator.

    A kernel has no dimension to spare for a batch: it runs once for each entry, on a copy of the
    entry where that is not contiguous, and the outputs are stacked. An operator that changes its
    arguments is refused: what is changed would be the copy.
    """

    def over_batch(info: Any, in_dims: tuple[Any, ...], *args: Any) -> Any:
        if not is_functional:
            raise TorchOpSignatureError(
                f"the torch operator {name!r} changes its arguments, which torch.vmap cannot do",
                hint="write the loop over the batch, or give the kernel a batch dimension",
            )
        pairs = [*zip(args, in_dims, strict=True)]
        entries = range(info.batch_size)
        if not entries:
            return _none_of(op(*(_blank(arg, dim) for arg, dim in pairs)))
        calls = [op(*(_entry(arg, dim, entry) for arg, dim in pairs)) for entry in entries]
        if isinstance(calls[0], tuple):
            stacked = tuple(torch.stack(parts) for parts in zip(*calls, strict=True))
            return stacked, (0,) * len(stacked)
        return torch.stack(calls), 0

    return over_batch


def _entry(arg: Any, dim: int | None, entry: int) -> Any:
    """Return what one call takes of an argument."""
    return arg if dim is None else arg.select(dim, entry).contiguous()


def _blank(arg: Any, dim: int | None) -> Any:
    """Return what stands for an entry of a batch that has none."""
    if dim is None:
        return arg
    return arg.new_zeros([size for axis, size in enumerate(arg.shape) if axis != dim])


def _none_of(made: Any) -> Any:
    """Return a batch of no outputs like `made`."""
    if isinstance(made, tuple):
        return tuple(part.new_empty((0, *part.shape)) for part in made), (0,) * len(made)
    return made.new_empty((0, *made.shape)), 0
