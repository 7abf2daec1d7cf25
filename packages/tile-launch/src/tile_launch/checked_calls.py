"""Calls of one executable: checks once per kind of arguments, outputs, and the launch."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from tile_launch.arguments import Checked
from tile_launch.dtypes import packing_of
from tile_launch.loaded_torch import loaded_torch
from tile_launch.manifest import Manifest, Scalar, Tensor
from tile_launch.native.launch_plans import keyed_scalars
from tile_launch.outputs import output_maker
from tile_launch.scalars import integer_bounds, largest_float
from tile_launch.views import key_function

if TYPE_CHECKING:
    from tile_launch.native.caller import Parameter
    from tile_launch.native.launch_plans import Learner, Starter

REMEMBERED = 256
"""Kinds of arguments whose checks are remembered, per kernel."""


class ArgumentChecks(Protocol):
    """What is asked of a signature: see `tile_launch.arguments.Signature`."""

    @property
    def inputs(self) -> tuple[int, ...]:
        """Positions of the parameters the caller passes, in call order."""

    def check(self, args: tuple[Any, ...], device: str) -> Checked:
        """Return the values of variables and what to pass on, or say what does not fit."""

    def scalar(self, position: int, arg: Any) -> Any:
        """Return the scalar argument at `position` as a Python number, or raise."""

    def output_shapes(self, values: Mapping[str, Any]) -> list[tuple[int, ...]]:
        """Return the extents of the outputs, in order."""


@dataclass(frozen=True, slots=True)
class CallPlan:
    """What to do for one kind of arguments that passed all checks.

    Makers allocate outputs at positions, which ascend; `changed` are positions among the passed
    arguments of torch tensors that the kernel may write.
    """

    makers: tuple[tuple[int, Callable[[], Any]], ...]
    changed: tuple[int, ...]


class CheckedCalls:
    """Calls one executable.

    Two calls whose tensors agree in shape, strides, element type, device and alignment, and whose
    scalars agree where sizes depend on them, pass or fail the same checks: only the first of them
    is checked. Others like it are made in C, where that could be compiled. What C knows `quick`
    calls; for all others it returns NotImplemented, having done nothing. The `library` that makes
    calls in C is asked for once, and may be None.
    """

    def __init__(
        self,
        signature: ArgumentChecks,
        manifest: Manifest,
        executable: Callable[..., None],
        device: str,
        library: Callable[[], Any],
        outputs: Callable[[Tensor, tuple[int, ...], Any, str], Callable[[], Any]] = output_maker,
    ) -> None:
        self.executable = executable
        self.device = device
        self.quick: Callable[..., Any] = lambda *args: NotImplemented
        self._checks, self._manifest, self._output_maker = signature, manifest, outputs
        self._library = library
        self._plans: dict[Hashable, CallPlan] = {}
        self._keys: dict[type, Callable[[Any], Hashable]] = {}
        inputs = [manifest.parameters[p] for p in signature.inputs]
        self._tensors = tuple(k for k, p in enumerate(inputs) if isinstance(p, Tensor))
        self._scalars = tuple((k, _plain(p)) for k, p in enumerate(inputs) if isinstance(p, Scalar))
        self._keyed = keyed_scalars(manifest) if self._scalars else frozenset()
        self._relevant = tuple(k for k, p in enumerate(signature.inputs) if p in self._keyed)
        self._learner: Learner | None = None
        self._is_learning = True

    def __call__(self, *args: Any) -> Any:
        """Check, allocate, run, and return None, the output, or the list of outputs.

        Whoever calls often asks `quick` before.
        """
        found = self.quick(*args)
        if found is not NotImplemented:
            return found
        try:
            if self._scalars:
                args = self._with_scalars(args)
                key: Hashable = self._key_beside_scalars(args)
            else:
                keys = self._keys
                key = tuple([keys[a.__class__](a) for a in args])
            plan = self._plans.get(key)
        except (KeyError, RuntimeError, TypeError, IndexError, AttributeError):
            plan = None
        given = args
        if plan is None:  # not in the handler: what is wrong is the argument, not a key
            plan, args = self._prepare(args)
        everything: Any = args
        if not plan.makers:
            self.executable(*args)
            result = None
        else:
            everything = list(args)
            for position, make in plan.makers:
                everything.insert(position, make())
            self.executable(*everything)
            made = [everything[p] for p in self._manifest.outputs]
            result = made[0] if len(made) == 1 else made
        for position in plan.changed:
            _announce_write(args[position])
        if self._is_learning:
            if self._learner is None:
                self._learner = self._new_learner()
            outputs = self._manifest.outputs
            self._is_learning = self._learner.learn(
                given, everything, plan.makers, outputs, plan.changed
            )
            self.quick = self._learner.call
        return result

    def check(self, args: tuple[Any, ...]) -> Checked:
        """Make every check that can be made on the host."""
        return self._checks.check(args, self.device)

    def _new_learner(self) -> Learner:
        from tile_launch.native.launch_plans import Learner  # few programs call often

        parameters = partial(_parameters, self._manifest, self._keyed)
        return Learner(self.executable, parameters, self._library)

    def _with_scalars(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return `args` with the scalars converted; they are checked in every call."""
        converted: list[Any] | None = None
        for k, (kind, low, high) in self._scalars:
            if args[k].__class__ is kind and low <= args[k] <= high:
                continue
            if converted is None:
                converted = list(args)
            converted[k] = self._checks.scalar(self._checks.inputs[k], args[k])
        return args if converted is None else tuple(converted)

    def _key_beside_scalars(self, args: tuple[Any, ...]) -> Hashable:
        if len(args) != len(self._checks.inputs):
            raise IndexError
        tensors = [self._keys[args[k].__class__](args[k]) for k in self._tensors]
        return (*tensors, *[args[k] for k in self._relevant])

    def _prepare(self, args: tuple[Any, ...]) -> tuple[CallPlan, tuple[Any, ...]]:
        """Check `args` and return the plan for them, remembering it if they have a key."""
        checked = self.check(args)
        plan = self._plan(checked)
        key = self._key(args, checked)
        if key is not None:
            if len(self._plans) >= REMEMBERED:
                self._plans.clear()
                if self._learner is not None:
                    self._learner.forget()
            self._plans[key] = plan
        return plan, checked.passed

    def _key(self, args: tuple[Any, ...], checked: Checked) -> Hashable:
        for k in self._tensors:
            kind = type(args[k])
            function = key_function(kind)
            if function is None:  # of other libraries: checked at each call
                return None
            self._keys[kind] = function
        tensors = [self._keys[type(args[k])](args[k]) for k in self._tensors]
        return (*tensors, *[checked.passed[k] for k in self._relevant])

    def _plan(self, checked: Checked) -> CallPlan:
        manifest, torch = self._manifest, loaded_torch()
        tensors = {k: checked.passed[k] for k in self._tensors if checked.passed[k] is not None}
        like = next(iter(tensors.values()), None)
        makers = {}
        shapes = self._checks.output_shapes(checked.values)
        for position, shape in zip(manifest.outputs, shapes, strict=True):
            param = manifest.parameters[position]
            assert isinstance(param, Tensor), "outputs are tensors"
            makers[position] = self._output_maker(param, shape, like, self.device)
        changed = []
        for k, tensor in tensors.items():
            param = manifest.parameters[self._checks.inputs[k]]
            is_torch = torch is not None and isinstance(tensor, torch.Tensor)
            if is_torch and isinstance(param, Tensor) and param.is_written:
                changed.append(k)
        return CallPlan(tuple(sorted(makers.items(), key=lambda made: made[0])), tuple(changed))


def _announce_write(tensor: Any) -> None:
    """Tell autograd that a torch tensor was changed behind its back.

    A gradient that needs the old contents then raises, instead of being wrong.
    """
    if not tensor.is_inference():
        sys.modules["torch"].autograd.graph.increment_version(tensor)


def _plain(param: Scalar) -> tuple[type | None, float, float]:
    """Return the type of arguments that need no conversion, and between what they lie."""
    bounds = integer_bounds(param.dtype)
    if bounds is not None:
        return int, *bounds
    if param.dtype in ("bool", "handle"):
        return (bool if param.dtype == "bool" else None), 0, 1
    largest = largest_float(param.dtype)
    return float, -largest, largest


def _parameters(
    manifest: Manifest, keyed: frozenset[int], starter: Starter
) -> list[Parameter] | None:
    """Return what C must know of the parameters; None if it cannot read one of them."""
    from tile_launch.native.c_structures import ArgumentKind
    from tile_launch.native.caller import Parameter

    kinds = {int: ArgumentKind.INT, bool: ArgumentKind.BOOL, float: ArgumentKind.FLOAT}
    found = []
    for position, param in enumerate(manifest.parameters):
        if isinstance(param, Tensor):
            if packing_of(param.dtype) > 1:
                return None
            kind = ArgumentKind.OUTPUT if position in manifest.outputs else ArgumentKind.TENSOR
            found.append(Parameter(kind, alignment=starter.alignments[position]))
        else:
            plain, _, _ = _plain(param)
            if plain is None:
                return None
            low, high = integer_bounds(param.dtype) or (0, 0)
            largest = largest_float(param.dtype)
            is_keyed = position in keyed or position in starter.keyed
            found.append(Parameter(kinds[plain], is_keyed, low, high, largest=largest))
    return found
