"""Kernels out of bundles: call them as the kernels they were saved from."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial
from typing import Any

from tile_launch.arguments import Checked, Signature
from tile_launch.dtypes import packing_of
from tile_launch.errors import ArgumentCountError
from tile_launch.keyword_arguments import in_order
from tile_launch.loaded_torch import loaded_torch
from tile_launch.manifest import Manifest, Scalar, Tensor
from tile_launch.manifest_json import text_of_manifest
from tile_launch.native.c_structures import ArgumentKind
from tile_launch.native.call_specialisation import Learner
from tile_launch.native.caller import Parameter
from tile_launch.native.launch_plans import Starter, keyed_scalars
from tile_launch.native.library_cache import installed_library
from tile_launch.outputs import output_maker
from tile_launch.scalars import integer_bounds, largest_float, scalar_value
from tile_launch.views import key_function

REMEMBERED = 256
"""Kinds of arguments whose checks are remembered, per kernel."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """What to do for one kind of arguments that passed all checks."""

    makers: tuple[tuple[int, Callable[[], Any]], ...]
    changed: tuple[int, ...]


class LoadedKernel:
    """A kernel ready to run: ``kernel(*args)`` takes and returns what the saved one does.

    Two calls whose tensors agree in shape, strides, element type, device and alignment, and
    whose scalars agree where sizes depend on them, pass or fail the same checks: only the first
    of them is checked. Others like it are made in C, where that could be compiled.

    Parameters
    ----------
    manifest
        What the host must know of it.
    executable
        Takes one checked argument per parameter, outputs among them.
    code
        The machine code, for other processes.
    load_again
        Makes the kernel of the text of its manifest and its code there.
    """

    def __init__(
        self,
        manifest: Manifest,
        executable: Callable[..., None],
        code: bytes,
        load_again: Callable[[str, bytes], LoadedKernel],
    ) -> None:
        self.manifest, self._code, self._load_again = manifest, code, load_again
        self.run_unchecked = executable
        positions = range(len(manifest.parameters))
        self._inputs = tuple(p for p in positions if p not in manifest.outputs)
        self._signature = Signature(manifest, self._inputs)
        self._plans: dict[Hashable, _Plan] = {}
        self._keys: dict[type, Callable[[Any], Hashable]] = {}
        self._tensors = tuple(
            k for k, p in enumerate(self._inputs) if isinstance(manifest.parameters[p], Tensor)
        )
        inputs = [manifest.parameters[p] for p in self._inputs]
        self._scalars = tuple(
            (k, p, _plain(p)) for k, p in enumerate(inputs) if isinstance(p, Scalar)
        )
        keyed = keyed_scalars(manifest)
        self._keyed = tuple(k for k, p in enumerate(self._inputs) if p in keyed)
        self._learner = Learner(executable, partial(_parameters, manifest), installed_library)
        self._quick = self._learner.call
        self._is_learning = True

    @property
    def name(self) -> str:
        """What the kernel is called."""
        return self.manifest.kernel

    @property
    def target(self) -> str:
        """What the code was compiled for, such as ``"cuda:sm_80"``."""
        return self.manifest.machine.target

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Check the arguments, allocate the outputs, run, and return the outputs.

        Arguments may come by name, too, which takes longer.

        Raises
        ------
        LaunchError
            If an argument is not what the kernel was compiled for, a grid is empty, or an
            assumption about sizes does not hold.
        DeviceAssertError
            If an assertion inside the kernel fails.
        """
        if named:
            names = [self.manifest.parameters[p].name for p in self._inputs]
            args = in_order(self.name, names, args, named, ArgumentCountError)
        found = self._quick(*args)
        if found is not NotImplemented:
            return found
        try:
            args = self._with_scalars(args)
            plan = self._plans.get(self._key(args))
        except (KeyError, RuntimeError, TypeError, IndexError, AttributeError):
            plan = None
        given = args
        if plan is None:  # not in the handler: what is wrong is the argument, not a key
            plan, args = self._prepare(args)
        outputs = self.manifest.outputs
        everything = list(args)
        for position, make in plan.makers:
            everything.insert(position, make())
        self.run_unchecked(*everything)
        for position in plan.changed:
            _announce_write(args[position])
        if self._is_learning:
            self._is_learning = self._learner.learn(
                given, everything, plan.makers, outputs, plan.changed
            )
            self._quick = self._learner.call
        if not outputs:
            return None
        made = [everything[position] for position in outputs]
        return made[0] if len(made) == 1 else made

    def run(self, *args: Any) -> None:
        """Check and run on all parameters in order: outputs are passed, and not returned.

        Raises
        ------
        LaunchError, DeviceAssertError
            As calls do.
        """
        positions = tuple(range(len(self.manifest.parameters)))
        checked = Signature(self.manifest, positions).check(args, self.manifest.machine.family)
        self.run_unchecked(*checked.passed)

    def _with_scalars(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return `args` with the scalars converted; they are checked in every call."""
        converted: list[Any] | None = None
        for k, param, (kind, low, high) in self._scalars:
            if args[k].__class__ is kind and low <= args[k] <= high:
                continue
            if converted is None:
                converted = list(args)
            converted[k] = scalar_value(f"{self.name}.{param.name}", param.dtype, args[k])
        return args if converted is None else tuple(converted)

    def _key(self, args: tuple[Any, ...]) -> Hashable:
        if len(args) != len(self._inputs):
            raise IndexError
        keys = self._keys
        tensors = [keys[args[k].__class__](args[k]) for k in self._tensors]
        return (*tensors, *[args[k] for k in self._keyed])

    def _prepare(self, args: tuple[Any, ...]) -> tuple[_Plan, tuple[Any, ...]]:
        checked = self._signature.check(args, self.manifest.machine.family)
        plan = self._plan(checked)
        for k in self._tensors:
            kind = type(args[k])
            function = key_function(kind)
            if function is None:  # of other libraries: checked at each call
                return plan, checked.passed
            self._keys[kind] = function
        if len(self._plans) >= REMEMBERED:
            self._plans.clear()
            self._learner.forget()
        tensors = [self._keys[type(args[k])](args[k]) for k in self._tensors]
        key: Hashable = (*tensors, *[checked.passed[k] for k in self._keyed])
        self._plans[key] = plan
        return plan, checked.passed

    def _plan(self, checked: Checked) -> _Plan:
        manifest, torch = self.manifest, loaded_torch()
        passed = [checked.passed[k] for k in self._tensors if checked.passed[k] is not None]
        like = passed[0] if passed else None
        makers = []
        shapes = self._signature.output_shapes(checked.values)
        for position, shape in zip(manifest.outputs, shapes, strict=True):
            param = manifest.parameters[position]
            if isinstance(param, Tensor):
                maker = output_maker(param, shape, like, manifest.machine.family)
                makers.append((position, maker))
        changed = []
        for k in self._tensors:
            param = manifest.parameters[self._inputs[k]]
            is_torch = torch is not None and isinstance(checked.passed[k], torch.Tensor)
            if is_torch and isinstance(param, Tensor) and param.is_written:
                changed.append(k)
        return _Plan(tuple(sorted(makers, key=lambda made: made[0])), tuple(changed))

    def __copy__(self) -> LoadedKernel:
        """Return the kernel itself: it does not change."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> LoadedKernel:
        """Return the kernel itself: it does not change."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the kernel as it travels to other processes, with its machine code."""
        return self._load_again, (text_of_manifest(self.manifest), self._code)

    def __repr__(self) -> str:
        names = ", ".join(p.name for p in self.manifest.parameters)
        return f"<kernel {self.name}({names}) for {self.target}>"


def _announce_write(tensor: Any) -> None:
    """Tell autograd that a torch tensor was changed behind its back."""
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


def _parameters(manifest: Manifest, starter: Starter) -> list[Parameter] | None:
    """Return what C must know of the parameters; None if it cannot read one of them."""
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
            kind = {int: ArgumentKind.INT, bool: ArgumentKind.BOOL}.get(plain, ArgumentKind.FLOAT)
            low, high = integer_bounds(param.dtype) or (0, 0)
            largest = largest_float(param.dtype)
            is_keyed = position in starter.keyed
            found.append(Parameter(kind, is_keyed, low, high, largest=largest))
    return found
