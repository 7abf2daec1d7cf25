"""A kernel as functions for threads: what lowering hands to the printer and the launcher."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, TypeAlias

from tile_core.dtypes import DType
from tile_core.ir.buffer import Buffer
from tile_core.ir.expr import Expr, Var
from tile_core.ir.printer import print_kernel
from tile_core.ir.stmt import Check, Kernel, Launch, Let
from tile_core.ir.structural_equality import same_value
from tile_core.records import dataclass

if TYPE_CHECKING:
    from tile_core.machine import SimtMachine
    from tile_core.passes.infer_layouts import Layouts


@dataclass(frozen=True, slots=True, eq=False)
class TensorMap:
    """How asynchronous copies see a tensor in global memory: as boxes of a grid of elements.

    Dimensions are innermost first. The launcher encodes it with the address of the tensor and
    the values of its symbols; a copy names the coordinates of a box's first element. Elements
    of a box that lie outside the extents are read as `fill`, and not written.

    Parameters
    ----------
    name
        Of the printed parameter.
    tensor
        The parameter of the kernel, or the workspace, that is copied from or to.
    dtype
        Element type of the map, which may read the tensor in another one of the same size.
    offset
        Elements of `tensor` before element (0, …, 0) of the map.
    extents
        Elements in each of 1 to 5 dimensions.
    strides
        Bytes from one element to the next, for each dimension but the innermost, whose
        elements are side by side; multiples of 16.
    box
        Elements that one copy moves, in each dimension: 1 to 256.
    element_strides
        Every how many elements of each dimension belong to a box, 1 to 8; empty for all. All
        of the innermost do.
    swizzle
        Bytes of a row (0, 32, 64, 128) whose chunks of 16 bytes change places in shared memory.
    interleave
        Bytes (0, 16, 32) of channels that lie side by side; 0 for ordinary tensors.
    fill
        What elements outside read as: ``"zero"`` or ``"nan"``.
    l2_promotion
        Bytes (0, 64, 128, 256) that the second-level cache fetches at a time: by default a line
        of it, as rows of boxes are at most that wide where chunks are exchanged.

    Notes
    -----
    Source: CUDA Driver API, "Tensor Map Object Management", cuTensorMapEncodeTiled.
    """

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

    @property
    def rank(self) -> int:
        """Dimensions of the map."""
        return len(self.extents)

    def says(self, other: TensorMap) -> bool:
        """Whether both cut boxes of the same shape out of the same tensor seen alike."""
        mine = (*self.extents, *self.strides, self.offset)
        theirs = (*other.extents, *other.strides, other.offset)
        return (
            (self.dtype, self.box, self.swizzle) == (other.dtype, other.box, other.swizzle)
            and (self.element_strides, self.fill) == (other.element_strides, other.fill)
            and (self.interleave, self.l2_promotion) == (other.interleave, other.l2_promotion)
            and len(mine) == len(theirs)
            and all(map(same_value, mine, theirs))
        )


Argument: TypeAlias = "Buffer | Var | TensorMap"
"""What the host passes to a launch: an address, a value, or an encoded map."""


@dataclass(frozen=True, slots=True, eq=False)
class DeviceFunction:
    """One launch: the program of one thread, and what the host passes to it.

    Parameters
    ----------
    name
        The symbol; the kernel's name, numbered if the kernel has several launches.
    params
        Flat global buffers (rank 1, contiguous elements) and scalars, in the order of the
        printed parameters. A flat buffer stands for the kernel parameter, or the workspace,
        that `arguments` names.
    arguments
        For each of `params`, the kernel's own buffer or scalar (a parameter, a symbol of a
        shape, or a name given between launches) whose address or value is passed; where
        the parameter is a `Var` of dtype ``handle``, the map that it stands for.
    launch
        Grid and thread extents, and a body without tile operators, `Parallel` and
        `Pipelined`: every buffer flat and every index an offset in elements.
    shared
        Byte offset of each flat shared buffer in the block's arena.
    shared_bytes
        Size of that arena.
    resident
        Blocks for which a multiprocessor shall have registers: limits those of a thread.
    cooperative
        Whether blocks wait for each other: all of the grid must run at a time.
    """

    name: str
    params: tuple[Buffer | Var, ...]
    arguments: tuple[Argument, ...]
    launch: Launch
    shared: Mapping[Buffer, int]
    shared_bytes: int
    resident: int = 1
    cooperative: bool = False

    @property
    def tensors(self) -> tuple[Buffer, ...]:
        """The tensors that the host passes, by their address or by a map, each once."""
        found = (a.tensor if isinstance(a, TensorMap) else a for a in self.arguments)
        return tuple(dict.fromkeys(a for a in found if isinstance(a, Buffer)))

    @property
    def threads(self) -> int:
        """Threads of a block."""
        x, y, z = self.launch.threads
        return x * y * z


HostStep: TypeAlias = "Let | Check | DeviceFunction"


@dataclass(frozen=True, slots=True, eq=False)
class DeviceProgram:
    """A kernel as its host runs it: launches in order, with scalar work between them.

    Parameters
    ----------
    kernel
        The tile kernel it was lowered from, with parameters, outputs and C texts.
    machine
        What it was lowered for.
    steps
        What the host does, in order.
    workspaces
        Global buffers that the runtime allocates for each call, not zeroed.
    layouts
        Where tiles are stored, and who asked for that; None where threads were written by hand.
    compile_flags
        What the user adds to the toolchain's command.
    """

    kernel: Kernel
    machine: SimtMachine
    steps: tuple[HostStep, ...]
    layouts: Layouts | None
    workspaces: tuple[Buffer, ...] = ()
    compile_flags: tuple[str, ...] = ()
    facts: Mapping[str, object] = field(default_factory=dict)

    @property
    def functions(self) -> tuple[DeviceFunction, ...]:
        """The launches, in order."""
        return tuple(s for s in self.steps if isinstance(s, DeviceFunction))

    def __str__(self) -> str:
        return "\n".join(print_kernel(Kernel(f.name, f.params, f.launch)) for f in self.functions)
