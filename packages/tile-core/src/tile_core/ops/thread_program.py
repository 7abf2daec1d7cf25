"""Launches whose body is the program of one thread: what their threads are given."""

from __future__ import annotations

from typing import ClassVar

from tile_core.dtypes import DType
from tile_core.errors import UnsupportedOnTarget
from tile_core.ir.buffer import Buffer, Region, whole
from tile_core.ir.expr import Expr, Var
from tile_core.ir.node import nodes_of
from tile_core.ir.stmt import Kernel, Launch, Seq
from tile_core.ops.operator import ControlOperator
from tile_core.records import dataclass, replace
from tile_core.target import Target


@dataclass(frozen=True, slots=True, eq=False)
class ThreadProgram(ControlOperator):
    """Heads a launch whose body is thread-level code, for one machine.

    Parameters
    ----------
    name
        The symbol of the function.
    target
        Kind and architecture of the machine, spelt ``kind:arch``.
    params
        What the function takes, in order: flat views of the kernel's tensors, scalars, and the
        addresses of tensor maps, whose `TensorMapParameter` stands before.
    shared, offsets
        Flat views of the block's shared memory, and the byte where each begins.
    shared_bytes
        Size of that memory.
    resident
        Blocks for which a multiprocessor shall have registers.
    cooperative
        Whether blocks wait for each other.
    """

    mnemonic: ClassVar[str] = "thread_program"
    spellings: ClassVar[tuple[str, ...]] = ("threads",)
    name: str
    target: str
    params: tuple[Buffer | Expr, ...]
    shared: tuple[Buffer, ...] = ()
    offsets: tuple[int, ...] = ()
    shared_bytes: int = 0
    resident: int = 1
    cooperative: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class TensorMapParameter(ControlOperator):
    """Says what a parameter of dtype ``handle`` stands for: see `tile_core.simt.program.TensorMap`.

    Stands before the `ThreadProgram` of the launch. `access` tells what the program does through
    the map: ``"r"``, ``"w"`` or ``"rw"``; nothing else in it names the tensor.
    """

    mnemonic: ClassVar[str] = "tensor_map"
    spellings: ClassVar[tuple[str, ...]] = ("tensor_map",)
    var: Var
    name: str
    tensor: Buffer
    dtype: DType
    offset: Expr
    extents: tuple[Expr, ...]
    strides: tuple[Expr, ...]
    box: tuple[int, ...]
    element_strides: tuple[int, ...] = ()
    swizzle: int = 0
    interleave: int = 0
    fill: str = "zero"
    l2_promotion: int = 128
    access: str = "r"

    def reads(self) -> tuple[Region, ...]:
        """Return the tensor, if boxes of it are read."""
        return (whole(self.tensor),) if "r" in self.access else ()

    def writes(self) -> tuple[Region, ...]:
        """Return the tensor, if boxes of it are written."""
        return (whole(self.tensor),) if "w" in self.access else ()


def thread_program_of(launch: Launch) -> ThreadProgram | None:
    """Return what heads the body of a launch; None if that is a program of tiles."""
    for stmt in launch.body.body if isinstance(launch.body, Seq) else ():
        if not isinstance(stmt, TensorMapParameter):
            return stmt if isinstance(stmt, ThreadProgram) else None
    return None


def thread_programs(kernel: Kernel) -> tuple[ThreadProgram, ...]:
    """Return the heads of a kernel's launches that are programs of threads."""
    return nodes_of(kernel.body, ThreadProgram)


def refuse_other_machine(kernel: Kernel, head: ThreadProgram, target: Target) -> None:
    """Refuse to compile a program of threads for another machine than its own.

    Raises
    ------
    UnsupportedOnTarget
        If the target is none that executes or emulates its machine.
    """
    kind, _, arch = head.target.partition(":")
    if kind in ("cpu", "interpret"):
        raise UnsupportedOnTarget(
            f"{kernel.name} is a program of threads for {head.target}, which has no threads of "
            "such a kind",
            span=head.span,
            hint="name a GPU, as in @T.threads(target='KIND:ARCH'), and run it anywhere on its "
            "emulator: 'KIND:ARCH@sim'",
        )
    if target.kind == kind and target.arch in ("", arch):
        return
    raise UnsupportedOnTarget(
        f"{kernel.name} is a program of threads for {head.target}, and the target is "
        f"{replace(target, executor='')}",
        span=head.span,
        hint=f"compile it with target='{head.target}', or '{head.target}@sim' on any machine",
    )
