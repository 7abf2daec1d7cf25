"""Kernels as functions of JAX: of arrays, and of what JAX traces.

JAX's arrays do not change: tensors that a kernel writes are returned, updated, and the arguments
stay as they are. In traced programs a kernel is a callback on the host: XLA hands over arrays on
the processor without copying them, and waits for the results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from tile_api.arguments import Signature, declared
from tile_api.integrations.gradient_roles import Roles
from tile_api.launching import Launcher
from tile_api.tensors import packed_type
from tile_core.errors import JaxCallError
from tile_core.ir.buffer import Buffer
from tile_core.ir.expr import Var
from tile_launch.scalars import scalar_value
from tile_launch.views import View

if TYPE_CHECKING:
    from tile_api.callable_kernel import CallableKernel

_ALIGNED = 1 << 20  # an address that passes for one; there is no memory behind it


def _as_jax(kernel: CallableKernel, backward: object) -> JaxFunction:
    """Return the function of a kernel that travelled."""
    return JaxFunction(kernel, kernel.launcher, backward)


class JaxFunction:
    """A kernel that takes and returns JAX's arrays.

    ``function(*args)`` takes the kernel's arguments. It returns the outputs, then the updated
    value of each argument that the kernel may change: one array as it is, several in a tuple.

    Attributes
    ----------
    updated
        Names of the arguments whose new values are returned after the outputs.
    """

    def __init__(self, kernel: CallableKernel, launcher: Launcher, backward: object) -> None:
        self._made_of = kernel, backward
        self._launcher = launcher
        self._signature = signature = launcher.signature
        _refuse(signature, launcher.device)
        params, inputs = signature.kernel.params, signature.inputs
        self._tensors = tuple(k for k, p in enumerate(inputs) if isinstance(params[p], Buffer))
        self._written = tuple(k for k in self._tensors if inputs[k] in signature.written)
        self.updated = tuple(params[inputs[k]].name for k in self._written)
        self._backward = _backward(signature, self.updated, backward)
        self.__name__ = signature.kernel.name

    def __call__(self, *args: Any) -> Any:
        """Run the kernel, or make it part of the program that JAX traces.

        Raises
        ------
        LaunchError
            If an argument is not what the kernel was compiled for: here, or while tracing.
        JaxCallError
            If a size depends on a number that is traced.
        """
        if len(args) != len(self._signature.inputs):
            self._signature.check(args, "cpu")
        arrays = [jnp.asarray(args[k]) if args[k] is not None else None for k in self._tensors]
        numbers = {k: a for k, a in enumerate(args) if k not in self._tensors}

        def run(*tensors: Any) -> Any:
            everything = dict(zip(self._tensors, tensors, strict=True)) | numbers
            return self._call([everything[k] for k in range(len(args))])

        if self._backward is None:
            found = run(*arrays)
        else:
            found = _differentiable(self.__name__, run, self._backward, numbers)(*arrays)
        return found[0] if len(found) == 1 else found

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what `pickle` writes and `copy` takes: the kernel, and how gradients are made."""
        return _as_jax, self._made_of

    def __repr__(self) -> str:
        return f"<JAX function of the kernel {self.__name__}>"

    # Inside --------------------------------------------------------------------------------

    def _call(self, args: list[Any]) -> tuple[Any, ...]:
        """Return outputs and updated arguments, as a tuple."""
        _check_widths(self._signature)
        places = [k for k, a in enumerate(args) if isinstance(a, jax.Array)]
        arrays = [args[k] for k in places]

        def on_host(*given: Any) -> tuple[Any, ...]:
            return self._run(args, dict(zip(places, given, strict=True)))

        if not any(isinstance(a, jax.core.Tracer) for a in arrays):
            return tuple(jnp.asarray(made) for made in on_host(*arrays))
        shapes = self._results(args)
        found = jax.pure_callback(on_host, shapes, *arrays, vmap_method="sequential")
        return tuple(found)

    def _run(self, args: Sequence[Any], given: dict[int, Any]) -> tuple[Any, ...]:
        """Launch on NumPy's view of the arrays: those that are written are copied before."""
        passed = [np.asarray(given[k]) if k in given else a for k, a in enumerate(args)]
        for k in self._written:
            passed[k] = np.array(passed[k], order="C")
        for k in self._tensors:
            if passed[k] is not None and not passed[k].flags.c_contiguous:
                passed[k] = np.ascontiguousarray(passed[k])
        found = self._launcher.quick(*passed)
        if found is NotImplemented:
            found = self._launcher(*passed)
        outputs = () if found is None else tuple(found) if isinstance(found, list) else (found,)
        return (*outputs, *(passed[k] for k in self._written))

    def _results(self, args: Sequence[Any]) -> tuple[Any, ...]:
        """Return shape and element type of all that is returned, after the checks of a call."""
        signature = self._signature
        views = tuple([_view(a) if k in self._tensors else a for k, a in enumerate(args)])
        checked = signature.check(views, "cpu", _static_scalar)
        results = []
        for position, shape in zip(
            signature.kernel.outputs, signature.output_shapes(checked.values), strict=True
        ):
            dtype = signature.kernel.params[position].dtype
            if dtype.packing > 1 and shape:
                shape = (*shape[:-1], -(-shape[-1] // dtype.packing))
                dtype = packed_type(dtype)
            results.append(jax.ShapeDtypeStruct(shape, dtype.numpy()))
        for k in self._written:
            results.append(jax.ShapeDtypeStruct(args[k].shape, args[k].dtype))
        return tuple(results)


def _check_widths(signature: Signature) -> None:
    """Raise if JAX, as it is set, cannot hold an output."""
    if jax.config.jax_enable_x64:
        return
    for position in signature.kernel.outputs:
        param = signature.kernel.params[position]
        if param.dtype.bits == 64:
            raise JaxCallError(
                f"{signature.name(param)}: JAX is set to have no elements of 64 bits, such as "
                f"{param.dtype}",
                notes=declared(param),
                hint='allow them before the first array: jax.config.update("jax_enable_x64", True)',
            )


def _view(array: Any) -> Any:
    """Return what is known of an array before there is memory."""
    if array is None:
        return None
    strides, step = [], 1
    for extent in reversed(array.shape):
        strides.append(step)
        step *= extent
    shape = tuple(array.shape)
    return View(shape, tuple(strides[::-1]), str(array.dtype), "cpu", _ALIGNED)


def _static_scalar(name: str, dtype: str, arg: Any) -> Any:
    """Return a number; None for one that is traced, and known when the program runs."""
    return None if isinstance(arg, jax.core.Tracer) else scalar_value(name, dtype, arg)


def _refuse(signature: Signature, device: str) -> None:
    """Raise for kernels that JAX cannot call."""
    if device != "cpu":
        raise JaxCallError(
            f"{signature.kernel.name} runs on {device}; JAX calls kernels on the processor",
            hint="compile it for the processor: target='cpu'",
        )
    for param in signature.kernel.params:
        if isinstance(param, Var) and param.dtype.is_handle:
            raise JaxCallError(
                f"{signature.name(param)} is an address ({param.dtype}), which JAX has none of",
                notes=declared(param),
                hint='declare it as a tensor: A: T.Tensor((n,), "float32") with n = T.dynamic("n")',
            )


def _backward(
    signature: Signature, updated: Sequence[str], backward: object
) -> Callable[..., Any] | None:
    """Return what gives gradients: of arguments, results, and gradients of results."""
    from tile_api.callable_kernel import CallableKernel

    if backward is None:
        return None
    if updated:
        raise JaxCallError(
            f"{signature.kernel.name} changes {', '.join(updated)}, and has no gradient",
            hint="return outputs instead: compile it with out_idx",
        )
    if isinstance(backward, CallableKernel):
        return _by_kernel(Roles.of(signature, backward.signature, JaxCallError), backward)
    if not callable(backward):
        raise JaxCallError(
            f"the gradient of {signature.kernel.name} is a function or a kernel, got "
            f"{type(backward).__name__}",
            hint="write def backward(arguments, results, gradients)",
        )
    return backward


def _by_kernel(roles: Roles, backward: CallableKernel) -> Callable[..., Any]:
    function = JaxFunction(backward, backward.launcher, None)

    def gradients_of(arguments: Sequence[Any], results: Any, gradients: Any) -> tuple[Any, ...]:
        values = {
            "input": arguments,
            "output": results if isinstance(results, tuple) else (results,),
            "gradient": gradients if isinstance(gradients, tuple) else (gradients,),
        }
        made = function(*(values[kind][k] for kind, k in roles.takes))
        found: list[Any] = [None] * roles.inputs
        for k, gradient in zip(
            roles.gives, made if isinstance(made, tuple) else (made,), strict=True
        ):
            found[k] = gradient
        return tuple(found)

    return gradients_of


def _differentiable(
    name: str, run: Callable[..., Any], backward: Callable[..., Any], numbers: dict[int, Any]
) -> Callable[..., Any]:
    """Return `run` with gradients for its arrays; numbers have none.

    `backward` is called with all arguments, and with results as the function returns them.
    """

    def single(found: tuple[Any, ...]) -> Any:
        return found[0] if len(found) == 1 else found

    def forward(*tensors: Any) -> tuple[Any, Any]:
        found = run(*tensors)
        return found, (tensors, found)

    def back(kept: Any, gradients: Any) -> tuple[Any, ...]:
        tensors, found = kept
        rest = iter(tensors)
        count = len(tensors) + len(numbers)
        arguments = [numbers[k] if k in numbers else next(rest) for k in range(count)]
        made = backward(tuple(arguments), single(found), single(gradients))
        listed = tuple(made) if isinstance(made, tuple | list) else (made,)
        if len(listed) not in (count, len(tensors)):
            raise JaxCallError(
                f"the gradient of {name} gave {len(listed)} values for {count} arguments",
                hint="return one for each argument, None for those that have no gradient",
            )
        places = [k for k in range(count) if k not in numbers]
        picked = [listed[k] if len(listed) == count else listed[i] for i, k in enumerate(places)]
        return tuple(
            jnp.zeros_like(t) if g is None and t is not None else g
            for t, g in zip(tensors, picked, strict=True)
        )

    function = jax.custom_vjp(run)
    function.defvjp(forward, back)
    wrapped: Callable[..., Any] = function
    return wrapped
