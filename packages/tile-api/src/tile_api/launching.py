"""Calling a kernel: checks once per kind of arguments, outputs, and the executable."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tile_api.arguments import Signature
from tile_api.tensors import announce_write, is_torch, output_maker
from tile_core.dtypes import Kind
from tile_core.ir.arith import integer_bounds
from tile_core.ir.buffer import Buffer
from tile_core.ir.expr import Var
from tile_core.ir.node import Node
from tile_core.ir.stmt import Kernel
from tile_core.records import dataclass
from tile_launch.arguments import Checked
from tile_launch.native.launch_plans import keyed_scalars
from tile_launch.scalars import largest_float
from tile_launch.views import key_function

if TYPE_CHECKING:
    from tile_launch.native.call_specialisation import Learner

REMEMBERED = 256
"""Kinds of arguments whose checks are remembered, per kernel."""

_hearers: list[Callable[[str], None]] = []


@contextmanager
def told_of_calls(hearer: Callable[[str], None]) -> Iterator[None]:
    """Give `hearer` the names of the kernels that a block calls, in all threads.

    It is told once for each kind of arguments: later calls of that kind cost nothing more.
    """
    _hearers.append(hearer)
    try:
        yield
    finally:
        _hearers.remove(hearer)


@dataclass(frozen=True, slots=True)
class CallPlan:
    """What to do for one kind of arguments that passed all checks.

    Parameters
    ----------
    makers
        Position of each output, and what allocates it; positions ascend.
    changed
        Positions among the passed arguments of torch tensors that the kernel may write.
    """

    makers: tuple[tuple[int, Callable[[], Any]], ...]
    changed: tuple[int, ...]


class Launcher:
    """Calls one executable.

    Two calls whose tensors agree in shape, strides, element type, device and alignment, and
    whose scalars agree where sizes depend on them, pass or fail the same checks: only the
    first of them is checked.

    Parameters
    ----------
    kernel
        In tile IR, with its outputs.
    executable
        Takes one checked argument per parameter.
    device
        Where tensors must be.
    """

    def __init__(self, kernel: Kernel, executable: Callable[..., None], device: str) -> None:
        self.kernel = kernel
        self.executable = executable
        self.device = device
        self.signature = Signature.of(kernel)
        self._plans: dict[Hashable, CallPlan] = {}
        self._keys: dict[type, Callable[[Any], Hashable]] = {}
        inputs = [kernel.params[p] for p in self.signature.inputs]
        self._scalars = tuple(k for k, p in enumerate(inputs) if isinstance(p, Var))
        keyed = keyed_scalars(self.signature.host.manifest) if self._scalars else frozenset()
        self._relevant = tuple(k for k in self._scalars if self.signature.inputs[k] in keyed)
        self._tensors = tuple(k for k, p in enumerate(inputs) if isinstance(p, Buffer))
        self._plain_scalars = tuple((k, _plain(inputs[k])) for k in self._scalars)
        self.quick: Callable[..., Any] = _in_python
        self._learner: Learner | None = None
        self._is_learning = True

    def __call__(self, *args: Any) -> Any:
        """Check, allocate, run, and return None, the output, or the list of outputs.

        Whoever calls often asks `quick` before: it makes calls of kinds that it knows in C, and
        returns NotImplemented, having done nothing, for all others.
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
            outputs = [everything[p] for p in self.kernel.outputs]
            result = outputs[0] if len(outputs) == 1 else outputs
        for position in plan.changed:
            announce_write(args[position])
        if self._is_learning:
            self._hand_over(given, everything, plan)
        return result

    def check(self, args: tuple[Any, ...]) -> Checked:
        """Make every check that can be made on the host.

        Raises
        ------
        LaunchError
            If an argument does not fit, a grid is empty, or a stated condition is false.
        """
        return self.signature.check(args, self.device)

    # Inside --------------------------------------------------------------------------------

    def _hand_over(self, given: tuple[Any, ...], everything: Sequence[Any], plan: CallPlan) -> None:
        """Let calls with arguments like these be made in C from now on, if that is possible.

        Parameters
        ----------
        given, everything
            The arguments as they were passed, and as the code ran on them, with outputs.
        """
        if self._learner is None:
            from tile_api.native_calls import learner_of

            keyed = frozenset(self.signature.inputs[k] for k in self._relevant)
            self._learner = learner_of(self.executable, self.signature, keyed)
        outputs = self.kernel.outputs
        self._is_learning = self._learner.learn(
            given, everything, plan.makers, outputs, plan.changed
        )
        self.quick = self._learner.call

    def _with_scalars(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return `args` with the scalars converted; they are checked in every call."""
        converted: list[Any] | None = None
        for k, (kind, low, high) in self._plain_scalars:
            arg = args[k]
            if arg.__class__ is kind and low <= args[k] <= high:
                continue
            if converted is None:
                converted = list(args)
            converted[k] = self.signature.scalar(self.signature.inputs[k], arg)
        return args if converted is None else tuple(converted)

    def _key_beside_scalars(self, args: tuple[Any, ...]) -> Hashable:
        if len(args) != len(self.signature.inputs):
            raise IndexError
        tensors = [self._keys[args[k].__class__](args[k]) for k in self._tensors]
        return (*tensors, *[args[k] for k in self._relevant])

    def _prepare(self, args: tuple[Any, ...]) -> tuple[CallPlan, tuple[Any, ...]]:
        """Check `args` and return the plan for them, remembering it if they have a key."""
        checked = self.check(args)
        for hearer in _hearers:
            hearer(self.kernel.name)
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
            if function is None:
                return None
            self._keys[kind] = function
        tensors = tuple(self._keys[type(args[k])](args[k]) for k in self._tensors)
        return (*tensors, *[checked.passed[k] for k in self._relevant])

    def _plan(self, checked: Checked) -> CallPlan:
        tensors = [checked.passed[k] for k in self._tensors if checked.passed[k] is not None]
        like = tensors[0] if tensors else None
        makers = []
        shapes = self.signature.output_shapes(checked.values)
        for position, shape in zip(self.kernel.outputs, shapes, strict=True):
            param = self.kernel.params[position]
            makers.append((position, output_maker(shape, param.dtype, like, self.device)))
        changed = tuple(
            k
            for k, position in enumerate(self.signature.inputs)
            if position in self.signature.written and is_torch(checked.passed[k])
        )
        return CallPlan(tuple(sorted(makers, key=lambda maker: maker[0])), changed)


def _plain(param: Node) -> tuple[type | None, float, float]:
    """Return the type of arguments that need no conversion, and between what they lie."""
    assert isinstance(param, Var), "a scalar parameter"
    kind = param.dtype.kind
    if kind in (Kind.INT, Kind.UINT):
        return int, *integer_bounds(param.dtype)
    if kind is Kind.FLOAT:
        largest = largest_float(str(param.dtype))
        return float, -largest, largest
    return (bool if kind is Kind.BOOL else None), 0, 1


def _in_python(*args: Any) -> Any:
    """Know no kind of arguments."""
    return NotImplemented
