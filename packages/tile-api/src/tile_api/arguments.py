"""The parameters of a kernel as the launcher checks them, with the places where they stand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from tile_core.errors import LaunchError, Note
from tile_core.ir.buffer import Buffer
from tile_core.ir.expr import Var
from tile_core.ir.host_data import HostNames, conditions_of, host_parameters, host_symbols
from tile_core.ir.node import Node, walk
from tile_core.ir.printer import symbols_of
from tile_core.ir.stmt import Kernel
from tile_core.plugins.dlpack_arrays import as_array
from tile_core.records import dataclass
from tile_launch.arguments import Checked
from tile_launch.arguments import Signature as HostSignature
from tile_launch.dlpack import DeviceTensor
from tile_launch.manifest import Condition, MachineRequirements, Manifest, Tensor
from tile_launch.scalars import scalar_value


@dataclass(frozen=True)
class Signature:
    """The parameters of a kernel, and which of them the caller passes: positions, in call order."""

    kernel: Kernel
    inputs: tuple[int, ...]

    @classmethod
    def of(cls, kernel: Kernel) -> Signature:
        """Derive the signature of `kernel` from its parameters and outputs."""
        positions = range(len(kernel.params))
        return cls(kernel, tuple(i for i in positions if i not in kernel.outputs))

    @property
    def untouched(self) -> frozenset[int]:
        """Parameters whose tensors the body never reads or writes: None will do."""
        return self._tensors(lambda tensor: not tensor.is_used)

    @property
    def written(self) -> frozenset[int]:
        """Parameters whose tensors the body may change."""
        return self._tensors(lambda tensor: tensor.is_written)

    def _tensors(self, asked: Callable[[Tensor], bool]) -> frozenset[int]:
        parameters = enumerate(self.host.manifest.parameters)
        return frozenset(i for i, p in parameters if isinstance(p, Tensor) and asked(p))

    @cached_property
    def host(self) -> HostSignature:
        """The parameters and conditions as the launcher knows them."""
        kernel, names = self.kernel, self._names
        contracts = {
            number: source.contract
            for number, (_, source) in enumerate(self._conditions)
            if isinstance(source, Var) and source.contract is not None
        }
        manifest = Manifest(
            kernel=kernel.name,
            machine=MachineRequirements(family="", name=""),
            parameters=host_parameters(kernel.params, names, signature=kernel),
            steps=(),
            symbols=host_symbols(kernel, names),
            outputs=kernel.outputs,
            conditions=tuple(condition for condition, _ in self._conditions),
        )
        used = {names.of(node) for node in walk(kernel.body) if isinstance(node, Var)}
        return HostSignature(manifest, self.inputs, frozenset(used), contracts, in_process=True)

    def check(
        self,
        args: tuple[Any, ...],
        device: str,
        scalar: Callable[[str, str, Any], Any] = scalar_value,
    ) -> Checked:
        """Return the values of variables and what to pass on, or raise a `LaunchError`.

        `tile_launch.arguments.Signature.check` says what the arguments are. What comes from other
        libraries on the host is passed on as a NumPy array.
        """
        with self.placed():
            checked = self.host.check(args, device, scalar)
        if device != "cpu":
            return checked
        passed = [
            as_array(param, arg) if isinstance(arg, DeviceTensor) else arg
            for param, arg in zip(self.passed_params, checked.passed, strict=True)
        ]
        return Checked(checked.values, tuple(passed))

    def scalar(self, position: int, arg: Any) -> Any:
        """Return the scalar argument at `position` as a Python number, or raise."""
        param = self.kernel.params[position]
        try:
            return scalar_value(self.name(param), str(param.dtype), arg)
        except LaunchError as error:
            error.notes = declared(param)
            raise

    def output_shapes(self, values: Mapping[str, Any]) -> list[tuple[int, ...]]:
        """Return the extents of the output tensors, in `Kernel.outputs` order."""
        with self.placed():
            return self.host.output_shapes(values)

    def name(self, param: Buffer | Var) -> str:
        """Return what messages call a parameter."""
        return f"{self.kernel.name}.{param.name}"

    @property
    def passed_params(self) -> list[Any]:
        """The parameters the caller passes, in call order."""
        return [self.kernel.params[p] for p in self.inputs]

    @contextmanager
    def placed(self) -> Iterator[None]:
        """Let the errors of a block show where what they are about was written."""
        try:
            yield
        except LaunchError as error:
            match error.subject:
                case ("parameter", str() as name):
                    named = [p for p in self.kernel.params if self._names.of(p) == name]
                    error.notes = (*declared(named[0]), *error.notes)
                case ("variable", str() as name):
                    known = (*symbols_of(self.kernel), *self.kernel.params)
                    error.span = next((v.span for v in known if self._names.of(v) == name), None)
                case ("condition", int() as number):
                    error.span = self._conditions[number][1].span
            raise

    @cached_property
    def _names(self) -> HostNames:
        names = HostNames()
        for param in self.kernel.params:
            names.of(param)
        return names

    @cached_property
    def _conditions(self) -> list[tuple[Condition, Node]]:
        return conditions_of(self.kernel, self._names)


def declared(param: Buffer | Var) -> tuple[Note, ...]:
    """Return the note that points at a parameter's declaration, if it is known."""
    return (Note("the parameter is declared here", param.span),) if param.span else ()
