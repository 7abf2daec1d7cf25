"""Manifests: what the host must know to launch a kernel, beside its machine code.

A manifest is data. It has the same form for every machine, in memory and in files (JSON, see
`tile_launch.manifest_json`); launchers are generated from it, for kernels that were just
compiled and for those that come out of a bundle.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from tile_launch.expressions import Expression, variables_of

SCHEMA = 1
"""The form of manifests that this version writes, and the newest that it reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """A parameter that is a tensor; elements of four bits share bytes.

    Shape and strides are in elements; None are strides of rows without gaps. The address is a
    multiple of `alignment` bytes. The kernel reads or writes what is used, and may change what is
    written.
    """

    name: str
    dtype: str
    shape: tuple[Expression, ...]
    strides: tuple[Expression, ...] | None = None
    alignment: int = 1
    is_used: bool = True
    is_written: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Scalar:
    """A parameter that is a number; expressions name it by `name`."""

    name: str
    dtype: str


Parameter: TypeAlias = "Tensor | Scalar"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """Memory on the device that the launcher allocates for each call, not zeroed."""

    name: str
    dtype: str
    shape: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorMap:
    """How copy engines see a tensor: boxes of a grid of elements, dimensions innermost first.

    `name` is that of the kernel's parameter, `tensor` a tensor or a workspace, and `offset` its
    elements before element (0, …, 0) of the map, which has 1 to 5 dimensions. Strides are bytes, of
    each dimension but the innermost. A copy moves `box` elements, of which every `element_strides`
    belong to it. Swizzle, interleave and promotion are bytes; elements outside read as ``"zero"``
    or ``"nan"``.
    """

    name: str
    tensor: str
    dtype: str
    offset: Expression
    extents: tuple[Expression, ...]
    strides: tuple[Expression, ...]
    box: tuple[int, ...]
    element_strides: tuple[int, ...]
    swizzle: int = 0
    interleave: int = 0
    fill: str = "zero"
    l2_promotion: int = 128

    @property
    def symbols(self) -> dict[str, None]:
        """The variables that the map depends on, beside the address of its tensor."""
        found: dict[str, None] = {}
        for size in (self.offset, *self.extents, *self.strides):
            found |= variables_of(size)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """An argument of a launch: where a tensor or a workspace begins."""

    tensor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """An argument of a launch: a variable, as a number of a type of C."""

    variable: str
    dtype: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """An argument of a launch: where the number of the first assertion that failed is put."""


Argument: TypeAlias = "Address | Value | TensorMap | Status"


@dataclass(frozen=True, slots=True, kw_only=True)
class Let:
    """A step of the host: give a number a name."""

    variable: str
    value: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A step of the host: go no further unless a condition on such numbers holds."""

    condition: Expression
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A step of the host: run one function of the machine code, `symbol`, on arguments in order.

    `name` is what people call it. Blocks of the grid, threads of a block and blocks of a cluster,
    if there are any, are along x (fastest), y and z; `shared_bytes` is dynamic memory of a block.
    One that may overlap begins while the grids before it still run, and waits for them itself;
    blocks of a cooperative one wait for each other, and must all run at a time.
    """

    name: str
    symbol: str
    grid: tuple[Expression, Expression, Expression]
    block: tuple[int, int, int]
    arguments: tuple[Argument, ...]
    cluster: tuple[int, ...] = ()
    shared_bytes: int = 0
    may_overlap: bool = False
    cooperative: bool = False

    @property
    def maps(self) -> tuple[TensorMap, ...]:
        """The arguments that are maps."""
        return tuple(a for a in self.arguments if isinstance(a, TensorMap))


Step: TypeAlias = "Let | Check | Launch"


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """What must hold for the arguments of a call.

    It is the ``"contract"`` of one variable, an ``"assume"`` or an ``"assert"``; of a ``"grid"``
    the value is the number of blocks along an axis, else a truth value.
    """

    value: Expression
    kind: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineRequirements:
    """What the code was compiled for, such as ``"cuda"`` and ``"sm_80"``.

    The grid has at most so many blocks along each axis; features are instruction sets that a
    processor must have, as Linux calls them.
    """

    family: str
    name: str
    max_grid: tuple[int, ...] = ()
    features: tuple[str, ...] = ()

    @property
    def target(self) -> str:
        """As targets are spelt: ``"cuda:sm_80"``."""
        return f"{self.family}:{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """A kernel as its host runs it, in steps.

    Parameters are in the order of arguments, with those at the positions `outputs`, which calls
    return. `symbols` are the integer types of variables that shapes and strides determine;
    workspaces are allocated for each call. Conditions are checked before anything runs; failures
    say what it means that the assertion with number 1, 2 … failed inside the kernel. One that
    prints writes to the standard output of C. Provenance tells versions, and a digest of the code's
    text.
    """

    kernel: str
    machine: MachineRequirements
    parameters: tuple[Parameter, ...]
    steps: tuple[Step, ...]
    symbols: Mapping[str, str] = field(default_factory=dict)
    workspaces: tuple[Workspace, ...] = ()
    outputs: tuple[int, ...] = ()
    conditions: tuple[Condition, ...] = ()
    failures: tuple[str, ...] = ()
    prints: bool = False
    provenance: Mapping[str, str] = field(default_factory=dict)

    @property
    def launches(self) -> tuple[Launch, ...]:
        """The launches, in order."""
        return tuple(step for step in self.steps if isinstance(step, Launch))
