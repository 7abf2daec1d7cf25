"""The parameters of a kernel as the launcher checks them, with the places where they stand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from tile_core.errors import LaunchError, Note
from tile_core.ir.buffer import Buffer
from tile_core.ir.effects import storages_read, storages_written
from tile_core.ir.expr import Var
from tile_core.ir.host_data import HostNames, as_tuples, conditions_of, tensor_of
from tile_core.ir.node import Node, walk
from tile_core.ir.printer import symbols_of
from tile_core.ir.stmt import Kernel
from tile_core.plugins.dlpack_arrays import as_array
from tile_core.records import dataclass
from tile_launch.arguments import Checked
from tile_launch.arguments import Signature as HostSignature
from tile_launch.dlpack import DeviceTensor
from tile_launch.manifest import Condition, MachineRequirements, Manifest, Scalar
from tile_launch.scalars import scalar_value


@dataclass(frozen=True)
class Signature:
    """The parameters of a kernel, and which of them the caller passes: positions, in call order."""

    kernel: Kernel
    inputs: tuple[int, ...]
    untouched: frozenset[int]  # whose tensors the body never reads or writes: None will do
    written: frozenset[int]  # whose tensors the body may change: not read-only

    @classmethod
    def of(cls, kernel: Kernel) -> Signature:
        """Derive the signature of `kernel` from its parameters and the effects of its body."""
        written = storages_written(kernel.body)
        touched = written | storages_read(kernel.body)
        positions = range(len(kernel.params))
        return cls(
            kernel,
            tuple(i for i in positions if i not in kernel.outputs),
            frozenset(i for i in positions if kernel.params[i] not in touched),
            frozenset(i for i in positions if kernel.params[i] in written),
        )

    @cached_property
    def host(self) -> HostSignature:
        """The parameters and conditions as the launcher knows them."""
        kernel, names = self.kernel, self._names
        parameters = tuple(
            Scalar(name=names.of(param), dtype=str(param.dtype))
            if isinstance(param, Var)
            else tensor_of(
                param,
                names,
                is_used=position not in self.untouched,
                is_written=position in self.written,
            )
            for position, param in enumerate(kernel.params)
        )
        conditions, contracts = [], {}
        for number, (data, source) in enumerate(self._conditions):
            value = as_tuples(data["value"])
            conditions.append(Condition(value=value, kind=data["kind"], message=data["message"]))
            if isinstance(source, Var) and source.contract is not None:
                contracts[number] = source.contract
        manifest = Manifest(
            kernel=kernel.name,
            machine=MachineRequirements(family="", name=""),
            parameters=parameters,
            steps=(),
            symbols={names.of(symbol): str(symbol.dtype) for symbol in symbols_of(kernel)},
            outputs=kernel.outputs,
            conditions=tuple(conditions),
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
    def _conditions(self) -> list[tuple[dict[str, Any], Node]]:
        return conditions_of(self.kernel, self._names)


def declared(param: Buffer | Var) -> tuple[Note, ...]:
    """Return the note that points at a parameter's declaration, if it is known."""
    return (Note("the parameter is declared here", param.span),) if param.span else ()
