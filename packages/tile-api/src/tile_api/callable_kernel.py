"""Kernels that can be called: what measuring, reports and other libraries build on."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from typing_extensions import Self

from tile_api.launching import Launcher
from tile_api.tracebacks import shortened
from tile_core.errors import ArgumentCountError, TileError
from tile_core.ir.node import Node
from tile_core.ir.ranks import rank_parameters
from tile_launch.dynamo import between_graphs
from tile_launch.keyword_arguments import in_order

if TYPE_CHECKING:
    from tile_api.arguments import Signature
    from tile_api.disk_cache.entry_codec import Build
    from tile_api.keys import CompileKey
    from tile_core.ir.stmt import Kernel
    from tile_core.pass_manager.instrumentation import Event
    from tile_core.plugins.host import PluginHost


class CallableKernel:
    """A kernel ready to run, without what is told and made of it: see `tile_api.CompiledKernel`."""

    def __init__(
        self,
        built: Build,
        source_function: object = None,
        key: Callable[[], CompileKey] | None = None,
        events: tuple[Event, ...] = (),
    ) -> None:
        self._built = built
        self._events = events
        self._key = key
        self._kernel: Kernel = built.kernel
        self._device = built.target.kind
        if built.runs_on_host:
            self._device = "cpu"
        self._launch = _launcher_of(built, self._device)
        self.prim_func = source_function
        self.latency: float | None = None
        self.ref_latency: float | None = None
        self.config: dict[str, Any] | None = None

    @between_graphs
    def __call__(self, *args: Any, **named: Any) -> Any:
        """Check the arguments, allocate the outputs, run, and return the outputs.

        Arguments of a kind that was checked before (shape, strides, element type, device)
        are not checked again. They may come by name, too, which takes longer.

        Raises
        ------
        LaunchError
            If an argument is not what the kernel was compiled for, a grid extent is not
            positive, or an assumption about sizes does not hold.
        DeviceAssertError
            If an assertion inside the kernel fails.
        """
        try:
            if named:
                names = self._launch.input_names
                args = in_order(self._kernel.name, names, args, named, ArgumentCountError)
            found = self._launch.quick(*args)
            return self._launch(*args) if found is NotImplemented else found
        except TileError as error:
            raise shortened(error)  # noqa: B904  (it is the same error)

    def raw(self, *args: Any) -> Callable[[], None]:
        """Return a function of no arguments that launches on `args` without further checks.

        `args` holds every parameter in order, outputs too; they are checked now and must
        stay as they are. For measuring, and for calling in a tight loop.
        """
        everything = replace(self._kernel, outputs=())
        checked = Launcher(everything, self._built.executable, self._device).check(args)
        return functools.partial(self._built.executable, *checked.passed)

    @property
    def target(self) -> str:
        """The target in canonical spelling."""
        return str(self._built.target)

    @property
    def launcher(self) -> Launcher:
        """What checks arguments and runs it."""
        return self._launch

    @property
    def host(self) -> PluginHost:
        """The plugins that it was compiled with."""
        return self._built.host

    @property
    def device(self) -> str:
        """Where its tensors are: ``"cpu"``, ``"cuda"`` or ``"hip"``."""
        return self._device

    @property
    def tile_ir(self) -> Kernel:
        """The kernel as traced, with its outputs."""
        return self._kernel

    @property
    def params(self) -> tuple[Node, ...]:
        """The parameters: `tile_core` buffers and scalar variables, in order."""
        return self._kernel.params

    @property
    def signature(self) -> Signature:
        """Which parameters the caller passes, and which of them the kernel may change."""
        return self._launch.signature

    @property
    def out_idx(self) -> list[int]:
        """Positions of the parameters that are returned."""
        return list(self._kernel.outputs)

    @property
    def artifact(self) -> Any:
        """What the backend's toolchain made."""
        return self._built.artifact

    def __copy__(self) -> Self:
        """Return a kernel that runs the same code, and may be told another tuning result."""
        made = object.__new__(type(self))
        vars(made).update(vars(self))
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return a kernel that runs the same code; attributes of the user are copied."""
        made = memo[id(self)] = self.__copy__()
        vars(made).update(copy.deepcopy(self._own_attributes(), memo))
        return made

    def _own_attributes(self) -> dict[str, Any]:
        """Return what belongs to this object and not to the code that it runs."""
        code = ("_built", "_events", "_key", "_kernel", "_device", "_launch", "prim_func")
        return {name: value for name, value in vars(self).items() if name not in code}


def _launcher_of(built: Build, device: str) -> Launcher:
    """Return what calls a kernel, which runs on every rank of a group or does not."""
    kernel, executable = built.kernel, built.executable
    if rank_parameters(kernel) is None:
        return Launcher(kernel, executable, device)
    from tile_api.rank_launching import RankLauncher  # few kernels do

    return RankLauncher(kernel, executable, device, str(built.target))
