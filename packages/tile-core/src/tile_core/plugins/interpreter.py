"""The reference interpreter as a backend: kernels run on NumPy with every access checked.

Its target is spelt ``interpret``; ``TILE_INTERPRET=1`` means the same for every kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tile_core.environment import environment
from tile_core.plugins.backend import Backend
from tile_core.plugins.hookspecs import hookimpl
from tile_core.records import dataclass
from tile_core.target import Target

if TYPE_CHECKING:
    from tile_core.interp import InterpretOptions
    from tile_core.ir.stmt import Kernel

NAME = "interpret"


@dataclass(frozen=True, slots=True)
class Program:
    """A kernel as the interpreter runs it: tile IR, as it is."""

    kernel: Kernel

    def __str__(self) -> str:
        from tile_core.ir.printer import print_kernel

        return print_kernel(self.kernel)


def lower(kernel: Kernel, target: Target, options: Any) -> Program:
    """Return the kernel as it is: the interpreter knows every operator but those of GPUs.

    It multiplies by its own means also where a program names an instruction.

    Raises
    ------
    UnsupportedOnTarget
        If the kernel names an instruction of GPUs.
    """
    from tile_core.passes.refuse_gpu_only import refuse_gpu_only

    return Program(refuse_gpu_only(kernel, target, ranges=False))


def load(artifact: Program, kernel: Kernel) -> Callable[..., None]:
    """Return a function that interprets the kernel on NumPy arrays and torch tensors.

    What it looks for is what ``TILE_CHECK`` names when it is called.
    """
    from tile_core.interp import interpret
    from tile_core.ir.buffer import Buffer
    from tile_core.plugins.dlpack_arrays import as_array

    program, params = artifact.kernel, artifact.kernel.params

    def run(*args: Any) -> None:
        arrays = [
            as_array(param, arg) if isinstance(param, Buffer) else arg
            for param, arg in zip(params, args, strict=True)
        ]
        interpret(program, arrays, options=_wanted())

    return run


def _wanted() -> InterpretOptions:
    """Return which mistakes to look for; accesses outside of buffers are always found."""
    from tile_core.interp import InterpretOptions

    names = environment().get("TILE_CHECK", "").replace(",", " ").split() or ["all"]
    return InterpretOptions(
        check_races=not {"all", "race"}.isdisjoint(names),
        check_uninitialised=not {"all", "uninit"}.isdisjoint(names),
    )


@hookimpl
def tile_backends() -> list[Backend]:
    """Provide the interpreter."""
    return [
        Backend(
            name=NAME,
            accumulator_memory=(NAME,),
            parse_target=lambda spec: Target(NAME) if spec == NAME else None,
            rules=lambda target: (),
            lower=lower,
            source=lambda module, target: str(module),
            compile=lambda module, target, options: module,
            load=load,
        )
    ]
