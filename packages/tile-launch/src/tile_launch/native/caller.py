"""Callers: functions in C that make the calls whose arguments Python has checked before."""

from __future__ import annotations

import ctypes
import math
import struct
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tile_launch.loaded_torch import loaded_torch
from tile_launch.native.c_structures import (
    ArgumentKind,
    Interface,
    LibrariesData,
    ParameterData,
    PlanData,
    SlotData,
    Source,
    Width,
)


@dataclass(frozen=True, slots=True)
class Parameter:
    """What a caller must know of a parameter.

    Calls with another number for one that `is_keyed` are of another kind: sizes depend on it.
    Integers are from `low` to `high`, floats up to `largest`. Addresses that lie differently
    against the alignment are of different kinds, and outputs that are no multiple of it are
    Python's matter.
    """

    kind: ArgumentKind
    is_keyed: bool = False
    low: int = 0
    high: int = 0
    alignment: int = 1
    largest: float = math.inf


@dataclass(frozen=True, slots=True)
class Slot:
    """An argument of compiled code: a parameter's address or number, or a constant of 64 bits."""

    source: Source
    parameter: int = 0
    width: Width = Width.INT
    value: int = 0


@dataclass(frozen=True, slots=True)
class Start:
    """How compiled code is started for one kind of arguments.

    The address of a function is called for a handle, in a context that `read_context` tells, on the
    stream ``stream_of(device)``. ``failed(kind, number)`` raises: of kind 0 the call returned
    `number`, of kind 1 it left `number` in the place for failed assertions. Attributes are those of
    a launch on CUDA; `keep` lives as long as this.
    """

    interface: Interface
    function: int
    handle: int
    slots: tuple[Slot, ...]
    failed: Callable[[int, int], object]
    context: int = 0
    read_context: int = 0
    grid: tuple[int, ...] = (1, 1, 1)
    block: tuple[int, ...] = (1, 1, 1)
    shared_bytes: int = 0
    attributes: int = 0
    attribute_count: int = 0
    stream_of: Callable[[int], int] | None = None
    device: int = 0
    keep: tuple[object, ...] = ()


@dataclass(frozen=True, slots=True)
class CallResult:
    """What a call does beside running the code.

    Makers allocate outputs at positions among the parameters, which ascend; `returned` are these in
    the order in which they are returned; `changed` are positions among the arguments of torch
    tensors that the kernel may write.
    """

    makers: tuple[tuple[int, Callable[[], Any]], ...]
    returned: tuple[int, ...]
    changed: tuple[int, ...]


class Caller:
    """Calls of one kernel in C.

    ``call(*args)`` returns what the kernel returns, or NotImplemented, having done nothing, for
    arguments of a kind that it does not know.
    """

    def __init__(self, library: Any, parameters: Sequence[Parameter]) -> None:
        self._library = library
        data = (ParameterData * max(1, len(parameters)))()
        for record, told in zip(data, parameters, strict=False):
            record.kind, record.keyed = told.kind, told.is_keyed
            record.low, record.high = max(told.low, -(1 << 63)), min(told.high, (1 << 63) - 1)
            record.largest = told.largest
            record.mask, record.array_mask = max(16, told.alignment) - 1, told.alignment - 1
        known, self._held = libraries()
        made = library.tile_caller(data, len(parameters), ctypes.byref(known))
        self.call: Callable[..., Any] = made if made is not None else lambda *args: NotImplemented
        self._is_able = made is not None

    def remember(self, args: tuple[Any, ...], start: Start, outcome: CallResult) -> bool:
        """Let calls with arguments like `args`, which passed all checks, be made in C.

        It is False if such arguments are not for C, or C knows their kind already and left the call
        to Python for another reason.
        """
        if not self._is_able:
            return False
        known, self._held = libraries()
        objects = (ctypes.py_object * max(1, len(args)))(*args)
        plan, keep = _plan(start, outcome, args)
        plan.keep = id(keep)
        capsule = self.call.__self__  # type: ignore[attr-defined]
        return bool(
            self._library.tile_remember(
                capsule, ctypes.byref(known), objects, len(args), ctypes.byref(plan)
            )
        )

    def forget(self) -> None:
        """Know no kind of arguments any more."""
        if self._is_able:
            self._library.tile_forget(self.call.__self__)  # type: ignore[attr-defined]


def _plan(
    start: Start, outcome: CallResult, args: tuple[Any, ...]
) -> tuple[PlanData, list[object]]:
    """Return what C reads, and what has to live as long."""
    slots = (SlotData * max(1, len(start.slots)))()
    for record, slot in zip(slots, start.slots, strict=False):
        record.kind, record.parameter, record.type = slot.source, slot.parameter, slot.width
        record.value = slot.value
    positions = [position for position, _ in outcome.makers]
    makers = [make for _, make in outcome.makers]
    output = (ctypes.c_int32 * max(1, len(positions)))(*positions)
    maker = (ctypes.c_void_p * max(1, len(makers)))(*map(id, makers))
    order = [positions.index(position) for position in outcome.returned]
    returned = (ctypes.c_int32 * max(1, len(order)))(*order)
    changed = (ctypes.c_int32 * max(1, len(outcome.changed)))(*outcome.changed)
    device = start.device
    types = [getattr(arg, "dtype", None) for arg in args]  # an address stands for each: no reuse
    keep: list[object] = [start, outcome, makers, slots, output, maker, returned, changed]
    keep += [device, types]
    plan = PlanData(
        interface=start.interface,
        slots=len(start.slots),
        function=start.function,
        handle=start.handle,
        slot=ctypes.addressof(slots),
        context=start.context,
        read_context=start.read_context,
        grid=(ctypes.c_uint32 * 3)(*start.grid),
        block=(ctypes.c_uint32 * 3)(*start.block),
        shared_bytes=start.shared_bytes,
        attribute_count=start.attribute_count,
        attributes=start.attributes,
        stream_of=0 if start.stream_of is None else id(start.stream_of),
        device=id(device),
        failed=id(start.failed),
        output_count=len(positions),
        changed_count=len(outcome.changed),
        output=ctypes.addressof(output),
        maker=ctypes.addressof(maker),
        returned=ctypes.addressof(returned),
        changed=ctypes.addressof(changed),
    )
    return plan, keep


EXCHANGE = "__dlpack_c_exchange_api__"
"""The attribute of ``torch.Tensor`` with DLPack's table of functions (DLPack 1.2)."""

_CAPSULE = b"dlpack_exchange_api"
_MAJOR = 1  # of DLPack: another one may order the table otherwise
_DESCRIBE = 40  # bytes before the function that fills a DLTensor, in that table


def libraries() -> tuple[LibrariesData, tuple[object, ...]]:
    """Return what is known of NumPy and torch, as far as they are loaded, and what keeps it.

    While another thread is importing torch, torch is not loaded.
    """
    numpy, torch = sys.modules.get("numpy"), loaded_torch()
    found = LibrariesData()
    held: tuple[Any, ...] = ()
    if numpy is not None:
        found.array = id(numpy.ndarray)
    if torch is not None:
        with suppress(AttributeError):  # where it is too old
            held = _of_torch(torch)
    if held:
        kinds, functions, found.describe = held
        found.tensor, found.parameter = map(id, kinds)
        found.is_negated, found.is_inference, found.bump = map(id, functions)
    return found, held


@lru_cache(maxsize=1)
def _of_torch(torch: Any) -> tuple[Any, ...]:
    """Return torch's types, its functions, and the address of the one that describes tensors.

    Nothing where that does not tell the truth.
    """
    kinds = torch.Tensor, torch.nn.Parameter
    functions = torch.Tensor.is_neg, torch.Tensor.is_inference, torch._C._increment_version
    describe = describing(getattr(torch.Tensor, EXCHANGE))
    return (kinds, functions, describe) if _is_true(describe, torch) else ()


def describing(table: object) -> int:
    """Return the address of the function in `table` that fills a DLTensor; 0 if there is none."""
    is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_IsValid", ctypes.pythonapi)
    )
    if not is_valid(table, _CAPSULE):
        return 0
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )(table, _CAPSULE)
    if ctypes.c_uint32.from_address(pointer).value != _MAJOR:
        return 0
    return int(struct.unpack("Q", ctypes.string_at(pointer + _DESCRIBE, 8))[0])


def _is_true(describe: int, torch: Any) -> bool:
    """Whether the function at an address describes a tensor as it is."""
    if not describe:
        return False
    fill = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)(describe)
    sample = torch.empty((3, 4), dtype=torch.float32, device="cpu")[1:, ::2]
    record = (ctypes.c_char * 48)()
    if fill(sample, record):
        return False
    address, *numbers, shape, strides, offset = struct.unpack("QiiiBBHQQQ", record.raw)
    extents = (ctypes.c_int64 * 2).from_address(shape)
    steps = (ctypes.c_int64 * 2).from_address(strides)
    told = (address + offset, numbers, tuple(extents), tuple(steps))
    return told == (sample.data_ptr(), [1, 0, 2, 2, 32, 1], (2, 2), (4, 2))
